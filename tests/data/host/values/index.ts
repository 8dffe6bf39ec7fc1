// Returns what JSON cannot or can only just carry, by name.
const cycle: any = {};
cycle.self = cycle;
const values: Record<string, () => unknown> = {
  undefined: () => undefined,
  null: () => null,
  string: () => 'plain',
  bigint: () => ({ content: [{ type: 'text', text: 10n }] }),
  cycle: () => cycle,
  toJSON: () => ({ toJSON() { throw new Error('no JSON for you'); } }),
  function: () => () => 1,
  symbol: () => Symbol('s'),
  surrogate: () => ({ content: [{ type: 'text', text: 'a\ud800b \\ud800 \u{1F600}' }] }),
  nul: () => ({ content: [{ type: 'text', text: 'a\u0000b' }] }),
  huge: () => ({ content: [{ type: 'text', text: 'n' }], details: { n: 1e20, m: 7, s: 18446744073709551616 } }),
  deep: () => {
    let value: any = [];
    for (let i = 0; i < 2500; i++) value = [value];
    return { content: [{ type: 'text', text: 'deep' }], details: value };
  },
  large: () => ({ content: [{ type: 'text', text: 'x'.repeat(3 << 20) }] }),
  blocks: () => ({ content: [{ type: 'text', text: 'one' }, { type: 'image', data: 'AA==', mimeType: 'image/png' }, { type: 'text', text: 'two' }] }),
  isError: () => ({ content: [{ type: 'text', text: 'it failed' }], isError: true }),
  thenable: () => ({ then(resolve: any) { resolve({ content: [{ type: 'text', text: 'from a thenable' }] }); } }),
};

export async function execute(_id: string, params: { value: string }) {
  return values[params.value]();
}
