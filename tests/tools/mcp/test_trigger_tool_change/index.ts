import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export async function execute() {
    const name = `added_${Date.now()}`;
    const directory = join(dirname(dirname(fileURLToPath(import.meta.url))), name);
    mkdirSync(directory);
    writeFileSync(join(directory, 'index.ts'), 'export async function execute() {}\n');
    writeFileSync(join(directory, 'TOOL.md'), `---\nname: ${name}\ndescription: Was added.\n---\n`);
    return { content: [{ type: 'text', text: name }] };
}
