export async function execute(...args: any[]) {
  const [id, params, signal, onUpdate] = args;
  const text = [args.length, typeof id, JSON.stringify(params), signal instanceof AbortSignal, signal.aborted, typeof onUpdate].join(' ');
  return { content: [{ type: 'text', text }] };
}
