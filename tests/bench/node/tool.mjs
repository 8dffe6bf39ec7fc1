// The trivial tool, for whoever offers it: pegfs runs tests/bench/trees.py's index.js, which is the same.
export function execute(_id, { text, size }) {
  return { content: [{ type: "text", text: size ? "x".repeat(size) : text }] };
}
