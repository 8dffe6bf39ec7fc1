import { spawn, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
export async function execute(_id: string, params: { ms: number; how?: string; file?: string }, signal: AbortSignal, onUpdate: any) {
  const text = (t: string) => ({ content: [{ type: 'text', text: t }] });
  if (params.how === 'stubborn') process.on('SIGTERM', () => {});
  onUpdate('running');
  if (params.how === 'block') execFileSync('sleep', [String(params.ms / 1000)]);
  if (params.how === 'spin') for (const end = Date.now() + params.ms; Date.now() < end; );
  if (params.how === 'family') {
    // A child, and a grandchild in a session of its own.
    spawn('sh', ['-c', `sleep 61 & setsid sh -c "echo \\$\\$ > ${params.file}; exec sleep 62" & wait`], { stdio: 'ignore', detached: true });
  }
  if (params.how === 'polite')
    return await new Promise((resolve) =>
      signal.addEventListener('abort', () => {
        writeFileSync(params.file!, String(signal.reason));
        resolve(text('stopped'));
      }),
    );
  await new Promise((resolve) => setTimeout(resolve, params.ms));
  return text(`slept, pid ${process.pid}`);
}
