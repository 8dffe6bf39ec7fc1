import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readFileSync, writeFileSync } from 'node:fs';
const HERE = typeof __dirname !== 'undefined' ? __dirname : dirname(fileURLToPath(import.meta.url));
export async function execute() {
  let shadow = 'readable';
  try {
    readFileSync('/etc/shadow');
  } catch {
    shadow = 'closed';
  }
  writeFileSync('/dev/stdout', 'to /dev/stdout\n');
  const ids = [process.getuid!(), process.geteuid!(), process.getgid!(), process.getgroups!().join('+')].join(' ');
  const status = readFileSync('/proc/self/status', 'utf8');
  const rights = /NoNewPrivs:\s*(\d)/.exec(status)![1] + ' ' + /CapEff:\s*(\w+)/.exec(status)![1];
  return { content: [{ type: 'text', text: `${ids} ${shadow} ${rights} ${readFileSync(join(HERE, 'bin/data.txt'), 'utf8').trim()} ${process.argv.length}` }] };
}
