export const execute = 'a string';
