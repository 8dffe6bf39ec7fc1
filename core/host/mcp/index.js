// A tool of an MCP server (mcp.json), made by `pegfs import mcp`. What a call starts ends with it, so
// each call has a server process of its own.

import { readFileSync } from "node:fs";
import { Client } from "./client.mjs";

const { command, cwd, tool } = JSON.parse(readFileSync(new URL("./mcp.json", import.meta.url), "utf8"));

export async function execute(toolCallId, params, signal, onUpdate) {
  const client = new Client(command, { cwd, onLog: (text) => console.error(text) });
  const onProgress = ({ message, progress, total }) => {
    const text = message ?? (total === undefined ? `${progress}` : `${progress} of ${total}`);
    onUpdate?.({ content: [{ type: "text", text }], details: { progress, total } });
  };
  try {
    await client.open();
    const result = await client.request("tools/call", { name: tool.name, arguments: params }, { signal, onProgress });
    const { resultType, ...kept } = result;
    return kept;
  } finally {
    await client.close();
  }
}
