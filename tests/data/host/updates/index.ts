const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
export async function execute(_id: string, params: { how: string }, _signal: any, onUpdate: any) {
  if (params.how === 'odd') {
    const cycle: any = {};
    cycle.self = cycle;
    for (const value of [1, 'text', null, undefined, cycle, 10n, () => 1, { content: [] }, [1, [2]]]) onUpdate(value);
  }
  if (params.how === 'two') {
    onUpdate({ content: [{ type: 'text', text: 'one' }] });
    await sleep(150);
    onUpdate({ content: [{ type: 'text', text: 'two' }] });
    await sleep(20);
  }
  if (params.how === 'blocking') {
    onUpdate({ content: [{ type: 'text', text: 'before' }] });
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
  }
  if (params.how === 'flood') for (let i = 0; i < 100000; i++) onUpdate({ content: [{ type: 'text', text: `line ${i}` }] });
  if (params.how === 'late') setTimeout(() => onUpdate('late'), 5);
  return { content: [{ type: 'text', text: 'done' }] };
}
