import * as assert from 'node:assert/strict';
import type { HumanInLoop } from '../../core/agent/human-in-loop.ts';
import { compileTools, type Tool, type ToolDefinition } from '../../core/agent/tool.ts';
import type { Route } from '../../core/approval/announce.ts';
import { ApprovalDesk, type Row } from '../../core/approval/desk.ts';
import { ApprovalGate, type CallOptions, type GateCall } from '../../core/approval/gate.ts';
import type { StoreHome } from '../../core/approval/home.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import type { ApprovalRequest, Parameters } from '../../core/approval/request.ts';
import { decide, type SignalAnswer, type SignalOptions } from '../../core/approval/signal.ts';
import { Kernel } from '../../core/kernel.ts';
import { type Problem, problemText } from '../../core/schema/shape.ts';

export const OWNER = { product: 'shop', env: 'dev', database: 'main' } as const;

export interface Office {
  readonly desk: ApprovalDesk;
  readonly kernel: Kernel;
  readonly warnings: string[];
}

/** What one process has: a desk over a connection of its own. */
export async function openOffice(home: StoreHome, kernel: Kernel = new Kernel()): Promise<Office> {
  const warnings: string[] = [];
  const desk = await ApprovalDesk.open({ home, kernel, owner: OWNER, warn: (message) => warnings.push(message) });
  return { desk, kernel, warnings };
}

/** Tools as an agent's definition compiles them. */
export function toolsOf(...definitions: ToolDefinition[]): ReadonlyMap<string, Tool> {
  const problems: Problem[] = [];
  const tools = compileTools(definitions, ['tools'], problems);
  assert.deepEqual(problems.map(problemText), []);
  return tools;
}

/** Pays money back, and counts how often it did. */
export class Bank {
  readonly paid: Parameters[] = [];
  readonly keys: string[] = [];

  tool(more: Partial<ToolDefinition> = {}): ToolDefinition {
    return {
      tag: 'refund',
      description: 'Pays money back to a customer.',
      requiresConfirmation: true,
      parameters: {
        order: { type: 'string', required: true },
        amount: { type: 'number', required: true, minimum: 0 },
        currency: { type: 'string', default: 'EUR' },
      },
      handler: async (ctx, params) => {
        this.paid.push(params as Parameters);
        this.keys.push(ctx.idempotencyKey);
        return { paid: (params as { readonly amount: number }).amount };
      },
      ...more,
    };
  }
}

export function loopOf(more: Partial<HumanInLoop> = {}): HumanInLoop {
  return { enabled: true, alwaysRequireApproval: new Set(), approvalTimeout: 60_000, ...more };
}

export function gateOf(
  { desk }: Office,
  tools: ReadonlyMap<string, Tool>,
  more: { humanInLoop?: Partial<HumanInLoop>; routes?: readonly Route[]; leaseMs?: number; agentTag?: string } = {},
): ApprovalGate {
  const { humanInLoop, agentTag = 'payouts', ...rest } = more;
  return new ApprovalGate(desk, { agentTag, tools, humanInLoop: loopOf(humanInLoop), ...rest });
}

let calls = 0;

/** A call of the bank's tool with names of its own. */
export function refund(parameters: unknown = { order: '1234', amount: 20 }, more: Partial<GateCall> = {}): GateCall {
  calls += 1;
  return { tool: 'refund', parameters, executionId: `exe_${calls}`, toolCallId: `call_${calls}`, ...more };
}

export interface Pending {
  readonly request: ApprovalRequest;
  readonly outcome: Promise<CallOutcome>;
}

/** Puts a call to a gate and gives it back once it waits. */
export async function waiting(gate: ApprovalGate, call: GateCall, options: CallOptions = {}): Promise<Pending> {
  let heard = (_: ApprovalRequest): void => {};
  const requested = new Promise<ApprovalRequest>((resolve) => {
    heard = resolve;
  });
  const outcome = gate.call(call, { ...options, onRequested: heard });
  const request = await Promise.race([
    requested,
    outcome.then((ended) => {
      throw new Error(`It never waited: ${JSON.stringify(ended)}`);
    }),
  ]);
  // Who tests something else does not wait for it.
  outcome.catch(() => undefined);
  return { request, outcome };
}

export function approve(
  { desk }: Office,
  { requestId, executionId }: Pick<ApprovalRequest, 'requestId' | 'executionId'>,
  modifiedParams?: Parameters,
  options: SignalOptions = { actor: 'ann' },
): Promise<SignalAnswer> {
  const payload = { requestId, ...(modifiedParams && { modifiedParams }) };
  return decide(desk, { executionId, signal: 'approve', payload }, options);
}

export function reject(
  { desk }: Office,
  { requestId, executionId }: Pick<ApprovalRequest, 'requestId' | 'executionId'>,
  reason?: string,
): Promise<SignalAnswer> {
  const payload = { requestId, ...(reason !== undefined && { reason }) };
  return decide(desk, { executionId, signal: 'reject', payload }, { actor: 'ann' });
}

export async function rowOf({ desk }: Office, { requestId }: Pick<ApprovalRequest, 'requestId'>): Promise<Row> {
  const row = await desk.read(requestId);
  assert.ok(row, `${requestId} is in the store`);
  return row;
}
