import * as assert from 'node:assert/strict';
import { approvalHandler } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import { callbackUrlOf, type GateUnderTest, withGate } from '../suites/gate-client.ts';
import { HtmlForm } from './html-form.ts';

const ORDER = {
  type: 'object',
  properties: {
    to: { type: 'string', description: 'Who gets it.', minLength: 2 },
    amount: { type: 'number', minimum: 0, maximum: 100 },
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: { sku: { type: 'string', pattern: '^[a-z]+$' } },
        required: ['sku'],
        additionalProperties: false,
      },
    },
    note: { type: 'string' },
    unit: { type: 'string', default: 'EUR' },
  },
  required: ['to', 'amount'],
  additionalProperties: false,
};
export const CALL = { to: 'ann', amount: 20, items: [{ sku: 'lamp' }] };

interface Page {
  readonly status: number;
  readonly text: string;
}

export interface PageUnderTest extends GateUnderTest {
  readonly request: ApprovalRequest;
  /** The parameters of the call as it ran. */
  readonly ran: unknown[];
  readonly outcome: Promise<{ readonly status: string }>;
  show(): Promise<HtmlForm>;
  post(fields: URLSearchParams): Promise<Page>;
}

/** A call of a tool that waits, and the page of its request. */
export async function withPage(
  body: (page: PageUnderTest) => Promise<void>,
  { inputSchema = ORDER as object, parameters = CALL as object, agentTag = 'orders', tag = 'order', more = {} } = {},
): Promise<void> {
  await withGate({}, async (under) => {
    const ran: unknown[] = [];
    const handler = async (_ctx: unknown, given: unknown) => ran.push(JSON.parse(JSON.stringify(given)));
    const gate = under.svc.gate({
      agentTag,
      tools: [{ tag, description: 'Orders things.', inputSchema, requiresConfirmation: true, handler, ...more }],
      humanInLoop: { enabled: true },
    } as never);
    let outcome: Promise<{ readonly status: string }> | undefined;
    const request = await new Promise<ApprovalRequest>((resolve, reject) => {
      outcome = gate.run({ tool: tag, parameters } as never, { onRequested: resolve });
      outcome.then((early) => reject(new Error(`the call ended: ${JSON.stringify(early)}`)), reject);
    });
    assert.ok(outcome);
    const url = await callbackUrlOf(under.svc, request);
    const answer = approvalHandler(under.svc);
    const post = async (fields: URLSearchParams): Promise<Page> => {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const response = await answer(new Request(url, { method: 'POST', headers, body: fields.toString() }));
      return { status: response.status, text: await response.text() };
    };
    const show = async () => new HtmlForm((await post(new URLSearchParams({ action: 'show' }))).text);
    await body({ ...under, request, ran, outcome, show, post });
    await under.svc.agents
      .signal({ signal: 'reject', payload: { requestId: request.requestId } })
      .catch(() => undefined);
    await outcome;
  });
}

export const statusOf = async ({ svc, request }: PageUnderTest) => (await svc.approvals.get(request.requestId)).status;
