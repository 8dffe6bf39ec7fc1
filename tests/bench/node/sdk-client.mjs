// A driver as probe.h describes it: for each line `N` it makes N calls, one after the other, and
// answers with the nanoseconds of each. `N M` makes them with M at a time, and how long all took
// comes first. Its arguments: the parameters, as JSON.
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const params = JSON.parse(process.argv[2]);
const client = new Client({ name: "bench", version: "1.0.0" });
await client.connect(
  new StdioClientTransport({
    command: process.execPath,
    args: [fileURLToPath(new URL("sdk-server.mjs", import.meta.url))],
  }),
);

async function call(taken) {
  const start = process.hrtime.bigint();
  const result = await client.callTool({ name: "trivial", arguments: params });
  taken.push(Number(process.hrtime.bigint() - start));
  if (result.isError) throw new Error(JSON.stringify(result));
}

for await (const line of createInterface({ input: process.stdin })) {
  const [count, together] = line.split(" ").map(Number);
  const taken = [];
  let left = count;
  const caller = async () => {
    while (left-- > 0) await call(taken);
  };
  const start = process.hrtime.bigint();
  await Promise.all(Array.from({ length: together || 1 }, caller));
  const all = Number(process.hrtime.bigint() - start);
  process.stdout.write(`${together ? `${all} ` : ""}${taken.join(" ")}\n`);
}
await client.close();
