const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export async function execute() {
    const resource = { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: '{"test":"data","value":123}' };
    return {
        content: [
            { type: 'text', text: 'Multiple content types test:' },
            { type: 'image', data: DOT, mimeType: 'image/png' },
            { type: 'resource', resource },
        ],
    };
}
