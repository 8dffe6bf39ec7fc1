type OnUpdate = (partial: unknown) => void;

export async function execute(_id: string, _params: object, _signal?: AbortSignal, onUpdate?: OnUpdate) {
    for (const progress of [0, 50, 100]) {
        onUpdate?.({ content: [{ type: 'text', text: `${progress} of 100` }], details: { progress, total: 100 } });
        await new Promise((done) => setTimeout(done, 50));
    }
    return { content: [{ type: 'text', text: 'progressed' }] };
}
