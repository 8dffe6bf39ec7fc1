import { execFileSync, spawn } from 'node:child_process';
export async function execute(_id: string, params: { how: string }) {
  const kept: unknown[] = [];
  if (params.how === 'heap') for (;;) kept.push(new Array(1000).fill(kept.length));
  if (params.how === 'buffer') for (;;) kept.push(Buffer.alloc(50 << 20, 1));
  if (params.how === 'child') execFileSync('python3', ['-c', 'x = bytearray(3 << 30)'], { stdio: 'inherit' });
  const until = (n: number, command: string, args: string[]) => {
    for (let i = 0; i < n; i++) spawn(command, args, { stdio: 'ignore', detached: true });
    return new Promise((resolve) => setTimeout(resolve, 10000));
  };
  if (params.how === 'children') await until(4, 'python3', ['-c', 'import time; x = bytearray(b"x") * (200 << 20); time.sleep(10)']);
  if (params.how === 'processes') await until(60, 'sleep', ['64']);
  return { content: [{ type: 'text', text: `${kept.length}` }] };
}
