import * as assert from 'node:assert/strict';
import type { HumanInLoop } from '../../core/tool/human-in-loop.ts';
import { compileTools, type Tool, type ToolDefinition } from '../../core/tool/tool.ts';
import type { DeliveryRoute } from '../../core/approval/announce.ts';
import { ApprovalService, type RequestRow } from '../../core/approval/service.ts';
import type { CallOptions, GateCall } from '../../core/approval/call.ts';
import { ApprovalGate } from '../../core/approval/gate.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { decide, type SignalResult, type SignalOptions } from '../../core/approval/decide.ts';
import { Kernel } from '../../core/kernel.ts';
import { type Problem, problemText } from '../../core/schema/validate.ts';

export const OWNER = { product: 'shop', env: 'dev', database: 'main' } as const;

export interface ApprovalProcess {
  readonly service: ApprovalService;
  readonly kernel: Kernel;
  readonly warnings: string[];
}

/** What one process has: a service over a connection of its own. */
export async function openApprovalProcess(home: StorageBackend, kernel: Kernel = new Kernel()): Promise<ApprovalProcess> {
  const warnings: string[] = [];
  const service = await ApprovalService.open({ backend: home, hooks: kernel.hooks, owner: OWNER, warn: (message) => warnings.push(message) });
  return { service, kernel, warnings };
}

/** Tools as an agent's definition compiles them. */
export function compileTestTools(...definitions: ToolDefinition[]): ReadonlyMap<string, Tool> {
  const problems: Problem[] = [];
  const tools = compileTools(definitions, ['tools'], problems);
  assert.deepEqual(problems.map(problemText), []);
  return tools;
}

/** Pays money back, and counts how often it did. */
export class Bank {
  readonly paid: ToolParameters[] = [];
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
        this.paid.push(params as ToolParameters);
        this.keys.push(ctx.idempotencyKey);
        return { paid: (params as { readonly amount: number }).amount };
      },
      ...more,
    };
  }
}

export function humanInLoop(more: Partial<HumanInLoop> = {}): HumanInLoop {
  return { enabled: true, alwaysRequireApproval: new Set(), approvalTimeout: 60_000, ...more };
}

export function createGate(
  { service }: ApprovalProcess,
  tools: ReadonlyMap<string, Tool>,
  more: { humanInLoop?: Partial<HumanInLoop>; routes?: readonly DeliveryRoute[]; leaseMs?: number; agentTag?: string } = {},
): ApprovalGate {
  const { humanInLoop: changes, agentTag = 'payouts', ...rest } = more;
  return new ApprovalGate(service, { agentTag, tools, humanInLoop: humanInLoop(changes), ...rest });
}

let calls = 0;

/** A call of the bank's tool with names of its own. */
export function refund(parameters: unknown = { order: '1234', amount: 20 }, more: Partial<GateCall> = {}): GateCall {
  calls += 1;
  return { tool: 'refund', parameters, executionId: `exe_${calls}`, toolCallId: `call_${calls}`, ...more };
}

export interface PendingCall {
  readonly request: ApprovalRequest;
  readonly outcome: Promise<CallOutcome>;
}

/** Puts a call to a gate and gives it back once it waits. */
export async function startCall(gate: ApprovalGate, call: GateCall, options: CallOptions = {}): Promise<PendingCall> {
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
  { service }: ApprovalProcess,
  { requestId, executionId }: Pick<ApprovalRequest, 'requestId' | 'executionId'>,
  modifiedParams?: ToolParameters,
  options: SignalOptions = { actor: 'ann' },
): Promise<SignalResult> {
  const payload = { requestId, ...(modifiedParams && { modifiedParams }) };
  return decide(service, { executionId, signal: 'approve', payload }, options);
}

export function reject(
  { service }: ApprovalProcess,
  { requestId, executionId }: Pick<ApprovalRequest, 'requestId' | 'executionId'>,
  reason?: string,
): Promise<SignalResult> {
  const payload = { requestId, ...(reason !== undefined && { reason }) };
  return decide(service, { executionId, signal: 'reject', payload }, { actor: 'ann' });
}

export async function rowOf({ service }: ApprovalProcess, { requestId }: Pick<ApprovalRequest, 'requestId'>): Promise<RequestRow> {
  const row = await service.read(requestId);
  assert.ok(row, `${requestId} is in the store`);
  return row;
}
