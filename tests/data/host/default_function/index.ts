export default async function execute() {
  return { content: [{ type: 'text', text: 'never' }] };
}
