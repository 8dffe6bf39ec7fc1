let calls = 0;
const started = `${process.pid}`;
export async function execute(_id: string, params: { how?: string }) {
  calls++;
  const before = [process.cwd(), process.env.LEFT_BEHIND ?? 'unset', process.env.HOME].join(' ');
  if (params.how === 'mess') {
    process.chdir('/tmp');
    process.env.LEFT_BEHIND = 'yes';
    delete process.env.HOME;
  }
  if (params.how === 'interval') setInterval(() => {}, 1000);
  return { content: [{ type: 'text', text: `${started} ${calls} ${before}` }] };
}
