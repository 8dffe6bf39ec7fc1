export const counter = { n: 0 };
