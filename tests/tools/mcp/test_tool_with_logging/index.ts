const pause = () => new Promise((done) => setTimeout(done, 50));

export async function execute() {
    console.log('Tool execution started');
    await pause();
    console.log('Tool processing data');
    await pause();
    console.log('Tool execution completed');
    return { content: [{ type: 'text', text: 'logged three times' }] };
}
