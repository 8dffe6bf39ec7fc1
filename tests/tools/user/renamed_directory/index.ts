export async function execute(_id: string, params: object) {
    return { content: [{ type: 'text', text: JSON.stringify([params, params]) }] };
}
