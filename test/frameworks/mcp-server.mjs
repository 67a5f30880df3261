// An MCP server over stdio with the tool `refund`, which appends the amount to a file: `mcp-server.mjs <file>`.
import { appendFileSync } from 'node:fs';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { z } from 'zod';

const [file = ''] = process.argv.slice(2);
const server = new McpServer({ name: 'shop', version: '1.0.0' });
const inputSchema = { amount: z.number(), note: z.string().default('none') };
server.registerTool('refund', { description: 'Pays money back.', inputSchema }, async ({ amount }) => {
  appendFileSync(file, `${amount}\n`);
  return { content: [{ type: 'text', text: `paid ${amount}` }] };
});
await server.connect(new StdioServerTransport());
