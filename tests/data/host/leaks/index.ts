export async function execute(_id: string, params: { how: string; token: string }, _signal: AbortSignal, onUpdate: any) {
  const { how, token } = params;
  onUpdate({ content: [{ type: 'text', text: `using ${token}` }] });
  console.log(`token is ${token}!`);
  process.stdout.write(`and its end: ${token.slice(0, 3)}`);
  await new Promise((resolve) => setTimeout(resolve, 30));
  process.stdout.write(token.slice(3));
  if (how === 'throws') throw new Error(`bad token ${token}`);
  if (how === 'error') return { content: [{ type: 'text', text: `bad token ${token}` }], isError: true };
  if (how === 'crashes') process.kill(process.pid, 'SIGKILL');
  if (how === 'exits') process.exit(1);
  return { content: [{ type: 'text', text: `the token is ${token}` }] };
}
