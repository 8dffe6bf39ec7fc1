export async function execute() {
  return {{
}
