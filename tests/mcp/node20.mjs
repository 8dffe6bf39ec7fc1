// The conformance suite imports fs.globSync, which Node has from 22 on, for a command that is not used
// here. Older ones get a name that fails when it is called: node --import node20.mjs
import * as fs from 'node:fs';
import { register } from 'node:module';

const dataUrl = (code) => 'data:text/javascript,' + encodeURIComponent(code);
const withGlob = dataUrl(`export * from 'node:fs';
export { default } from 'node:fs';
export const globSync = () => { throw new Error('this Node has no fs.globSync'); };`);

if (!fs.globSync)
    register(dataUrl(`export async function resolve(name, context, next) {
        const isForSuite = name === 'fs' && /conformance.dist/.test(context.parentURL ?? '');
        return isForSuite ? { url: ${JSON.stringify(withGlob)}, shortCircuit: true } : next(name, context);
    }`));
