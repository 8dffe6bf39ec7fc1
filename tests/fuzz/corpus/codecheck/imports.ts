import { fileURLToPath } from 'node:url';
import { plain } from './lib/plain';
import { suffixed } from './lib/suffixed.js';
import { typed } from './lib/typed.ts';
import { inner, type Shape } from './lib';
import data from './data.json';

const ready: string = await Promise.resolve('awaited');

enum Colour {
    Red = 'red',
}

export async function execute() {
    const shape: Shape = { sides: 3 };
    const seen = {
        plain,
        suffixed,
        typed,
        inner,
        data,
        ready,
        colour: Colour.Red,
        sides: shape.sides,
        dirname: typeof __dirname === 'string' ? __dirname : null,
        url: fileURLToPath(import.meta.url),
    };
    return { content: [{ type: 'text', text: JSON.stringify(seen) }] };
}
