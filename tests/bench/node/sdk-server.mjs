// The trivial tool as an MCP server on stdio, as the SDK's documentation has it.
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { z } from "zod";
import { execute } from "./tool.mjs";

const server = new McpServer({ name: "trivial", version: "1.0.0" });
server.registerTool(
  "trivial",
  {
    title: "Trivial",
    description: "Returns its text.",
    inputSchema: { text: z.string().optional(), size: z.number().optional() },
  },
  async (params) => execute("1", params),
);
await server.connect(new StdioServerTransport());
