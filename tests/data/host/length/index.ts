export async function execute(_id: string, params: { text: string }) {
  return { content: [{ type: 'text', text: `${params.text.length} ${params.text.slice(0, 8)}` }] };
}
