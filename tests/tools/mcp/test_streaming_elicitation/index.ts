type OnUpdate = (partial: unknown) => void;

export async function execute(_id: string, _params: object, _signal?: AbortSignal, onUpdate?: OnUpdate) {
    console.log('about to report');
    onUpdate?.({ content: [{ type: 'text', text: 'half of it' }] });
    return { content: [{ type: 'text', text: 'streamed' }] };
}
