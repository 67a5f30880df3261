/**
 * What a block of code in README.md and docs/ may use without saying where it comes from: what the page has spoken of
 * before. A block that declares a name itself means its own.
 */
export const PRELUDE = `
import type { ApprovalRequest, Database, Svc } from '@svc/sdk';
import type { Hono } from 'hono';

declare global {
  /** The client, and a database of it. */
  const svc: Svc;
  const db: Database;
  /** A request that waits, and its parts. */
  const request: ApprovalRequest;
  const requestId: string;
  const executionId: string;
  /** What a user of an application decided there. */
  const approved: boolean;
  const reason: string;
  const modifiedParams: { readonly [parameter: string]: number };
  const user: { readonly email: string; readonly address: string };
  /** The application's own server, and what its tools do. */
  const app: Hono;
  const bank: { refund(orderId: string, amount: number, options: { idempotencyKey: string }): Promise<string> };
}
`;
