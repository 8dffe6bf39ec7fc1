// The least that a warm Node process can do: a line of JSON in, a line of JSON out, and nothing else.
import { execute } from "./tool.mjs";

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (text) => {
  const lines = (rest + text).split("\n");
  rest = lines.pop();
  for (const line of lines) process.stdout.write(`${JSON.stringify(execute("1", JSON.parse(line)))}\n`);
});
