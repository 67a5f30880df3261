import * as assert from 'node:assert/strict';
import type { ApprovalsConfig, Config } from '../../config/define.ts';
import type { Gate } from '../../config/sdk/gate.ts';
import { Svc } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { callbackToken } from '../../core/approval/token.ts';

export const CALLBACK_KEY = 'a key for tests, of thirty-two bytes or more';
export const WEBHOOK_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

export interface GateUnderTest {
  readonly svc: Svc;
  readonly gate: Gate;
  /** The parameters of every call of the tool. */
  readonly refunds: unknown[];
  /** Starts a call that waits for approval. Returns its request and the promise of its outcome. */
  refund(
    parameters?: object,
    requester?: string,
  ): Promise<{ readonly request: ApprovalRequest; readonly outcome: Promise<{ status: string; result: unknown }> }>;
}

/** Where a webhook would send the decision, to a client with `CALLBACK_KEY`. */
export async function callbackUrlOf(svc: Svc, { requestId, timeout }: ApprovalRequest): Promise<string> {
  const { reviewToken: digest = '' } = await svc.approvals.get(requestId, { reveal: true, actor: 'the test' });
  const token = callbackToken(CALLBACK_KEY, { product: 'shop', env: 'dev', requestId, digest, timeout });
  return `https://shop.example/svc/approvals/${requestId}/respond?token=${token}`;
}

/** Approves by the callback, as JSON. Returns the status with who decided it, or with the code of the error. */
export async function approveByCallback(
  svc: Svc,
  handler: (request: Request) => Promise<Response>,
  request: ApprovalRequest,
  more: Readonly<Record<string, string>>,
): Promise<[status: number, result: unknown]> {
  const headers = { 'content-type': 'application/json', ...more };
  const url = await callbackUrlOf(svc, request);
  const response = await handler(new Request(url, { method: 'POST', headers, body: '{"approved":true}' }));
  const { status, deciders } = await svc.approvals.get(request.requestId);
  assert.equal(status, response.status === 200 ? 'approved' : 'waiting');
  if (response.status === 200) return [200, deciders];
  return [response.status, ((await response.json()) as { error: string }).error];
}

interface Setup {
  readonly approvals?: ApprovalsConfig;
  readonly config?: Config;
  readonly humanInLoop?: object;
}

/** Runs `body` with a client that has one tool, which requires approval. The store is in memory by default. */
export async function withGate(
  { approvals, config, humanInLoop }: Setup,
  body: (gate: GateUnderTest) => Promise<void>,
): Promise<void> {
  const svc = new Svc({
    config: {
      product: 'shop',
      env: 'dev',
      ...config,
      approvals: { callbackBase: 'https://shop.example/svc', callbackKey: CALLBACK_KEY, ...approvals },
    },
  });
  const refunds: unknown[] = [];
  const gate = svc.gate({
    agentTag: 'payouts',
    tools: [
      {
        tag: 'refund',
        description: 'Pays money back.',
        requiresConfirmation: true,
        parameters: {
          orderId: { type: 'string', required: true },
          amount: { type: 'number', required: true, minimum: 0 },
          card: { type: 'string', required: false, sensitive: true },
        },
        handler: async (_ctx: unknown, parameters: unknown) => {
          refunds.push(parameters);
          return { paid: true };
        },
      },
    ],
    humanInLoop: { enabled: true, ...humanInLoop },
  } as never);
  try {
    await body({
      svc,
      gate,
      refunds,
      async refund(parameters = { orderId: '1234', amount: 20 }, requester = undefined) {
        let onRequested: (request: ApprovalRequest) => void = () => {};
        const requested = new Promise<ApprovalRequest>((resolve) => {
          onRequested = resolve;
        });
        const outcome = gate.run({ tool: 'refund', parameters, requester }, { onRequested });
        const early = outcome.then(({ status }) => {
          throw new Error(`the call ended as ${status} without a request`);
        });
        early.catch(() => undefined);
        return { request: await Promise.race([requested, early]), outcome };
      },
    });
  } finally {
    await svc.close();
  }
}
