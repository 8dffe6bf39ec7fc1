exports.execute = async () => ({ content: [{ type: 'text', text: 'never' }] });
