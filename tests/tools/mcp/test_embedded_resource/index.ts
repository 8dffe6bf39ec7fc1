export async function execute() {
    const resource = { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' };
    return { content: [{ type: 'resource', resource }] };
}
