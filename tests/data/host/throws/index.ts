function fail(how: string): never {
  if (how === 'error') throw new Error('the database is locked');
  if (how === 'type') return (undefined as any).length;
  if (how === 'string') throw 'just a string';
  if (how === 'null') throw null;
  if (how === 'object') throw { code: 42 };
  if (how === 'hostile') throw { toString() { throw new Error('worse'); }, toJSON() { throw new Error('worse'); } };
  throw new Error('');
}

export async function execute(_id: string, params: { how: string }): Promise<any> {
  if (params.how === 'exit') process.exit(3);
  if (params.how === 'exit0') process.exit(0);
  if (params.how === 'kill') process.kill(process.pid, 'SIGKILL');
  if (params.how === 'rejection') {
    Promise.reject(new Error('nobody caught this'));
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
  if (params.how === 'timer') {
    setTimeout(() => fail('error'), 1);
    await new Promise((resolve) => setTimeout(resolve, 5000));
  }
  if (params.how === 'late') {
    setTimeout(() => fail('error'), 10);
    return { content: [{ type: 'text', text: 'fine' }] };
  }
  if (params.how === 'stderr') {
    console.error('cannot open the device');
    process.abort();
  }
  if (params.how === 'none') return { content: [{ type: 'text', text: `pid ${process.pid}` }] };
  fail(params.how);
}
