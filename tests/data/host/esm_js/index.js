import { join } from 'node:path';
export async function execute(id, params) {
  return { content: [{ type: 'text', text: join('a', params.name) }] };
}
