const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export async function execute() {
    return { content: [{ type: 'image', data: DOT, mimeType: 'image/png' }] };
}
