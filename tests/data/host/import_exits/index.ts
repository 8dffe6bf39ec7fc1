process.exit(7);
export async function execute() {}
