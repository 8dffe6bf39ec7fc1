export default { execute: async () => ({ content: [{ type: 'text', text: 'never' }] }) };
