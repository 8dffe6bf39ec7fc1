const SILENCE = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

export async function execute() {
    return { content: [{ type: 'audio', data: SILENCE, mimeType: 'audio/wav' }] };
}
