export async function execute(_id: string, { who }: { who: string }) {
    return { content: [{ type: 'text', text: `Hi, ${who}` }] };
}
