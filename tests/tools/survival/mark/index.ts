import { appendFileSync } from 'node:fs';

type Params = { file: string; data: string; ms?: number };

export async function execute(_id: string, { file, data, ms = 0 }: Params) {
    appendFileSync(file, `${data}\n`);
    await new Promise((done) => setTimeout(done, ms));
    return { content: [{ type: 'text', text: `marked ${data}` }] };
}
