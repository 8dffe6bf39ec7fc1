export async function execute() {
    console.log('a line that only those get who asked for it');
    return { content: [{ type: 'text', text: 'logged' }] };
}
