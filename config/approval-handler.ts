import type { Svc } from './client.ts';

/**
 * The approval callback as a web-standard handler, for Hono, Next, Express or Node's own server.
 * @example app.all('/svc/*', (c) => approvalHandler(svc)(c.req.raw))
 * @experimental
 */
export function approvalHandler(svc: Svc): (request: Request) => Promise<Response> {
  return svc.approvals.handler();
}
