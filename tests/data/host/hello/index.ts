type ToolResult = { content: Array<{ type: string; text: string }>; isError?: boolean };
type Params = { name: string };

export async function execute(_toolCallId: string, params: Params): Promise<ToolResult> {
  return { content: [{ type: 'text', text: `Hello, ${params.name}!` }] };
}
