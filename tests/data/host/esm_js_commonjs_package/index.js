import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
export async function execute() {
  const text = [basename(fileURLToPath(import.meta.url)), typeof require, basename(__dirname)].join(' ');
  return { content: [{ type: 'text', text }] };
}
