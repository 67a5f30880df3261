/**
 * Names that a code block in README.md and docs/ may use without declaring them, because the page introduces them. A
 * declaration in the block takes precedence.
 */
export const PRELUDE = `
import type { ApprovalRequest, Database, Svc } from '@svc/sdk';
import type { Hono } from 'hono';

declare global {
  /** The client, and a database of it. */
  const svc: Svc;
  const db: Database;
  /** A waiting request, and its parts. */
  const request: ApprovalRequest;
  const requestId: string;
  const executionId: string;
  /** The decision of a user of the application. */
  const approved: boolean;
  const reason: string;
  const modifiedParams: { readonly [parameter: string]: number };
  const user: { readonly email: string; readonly address: string };
  /** The server of the application, and the service that its tools call. */
  const app: Hono;
  /** A client of an MCP server. */
  const mcp: {
    listTools(): Promise<{ tools: { name: string; description?: string; inputSchema: { type: 'object' } }[] }>;
    callTool(call: { name: string; arguments: unknown }): Promise<unknown>;
  };
  const bank: { refund(orderId: string, amount: number, options: { idempotencyKey: string }): Promise<string> };
}
`;
