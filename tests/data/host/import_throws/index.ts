throw new Error('no database at import');
export async function execute() {}
