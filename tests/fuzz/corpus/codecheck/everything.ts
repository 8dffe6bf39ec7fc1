import a, { b } from 'node:fs'; export { x as execute, y } from './z';
@d class C { constructor(private p: string) {} }
enum E { A } namespace N {} // pegfs-ignore: bun-api
type Params = { a?: Array<{ b: string }>; readonly 'c': <T>(x: T) => void };
export const execute = async (i: string, { a }: Params, ...r): Promise<{ x: Array<T> }> => {
  const t = `a${b + `c${'d\''}`}e`, r = /[/\]]+/g, q = a?.b / 2 ?? { x: 1 };
  try { throw 1 } catch { for await (const q of w) throw q }
  Bun.file(<X>(y)); module.exports = require.main; console.log('/officer/tools/x');
};
