import * as assert from 'node:assert/strict';
import type { DeliveryRoute } from '../../core/approval/announce.ts';
import { type AuditEntry, auditTrail } from '../../core/approval/audit.ts';
import type { StorageBackend } from '../../core/approval/backend.ts';
import { type CallOptions, DETACH, type GateCall } from '../../core/approval/call.ts';
import { decide, type SignalOptions, type SignalResult } from '../../core/approval/decide.ts';
import { ApprovalGate } from '../../core/approval/gate.ts';
import type { CallOutcome } from '../../core/approval/outcome.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import type { StoredRule } from '../../core/approval/rule.ts';
import { ApprovalService, type RequestRow } from '../../core/approval/service.ts';
import { withClaim } from '../../core/approval/state.ts';
import { Kernel } from '../../core/kernel.ts';
import type { HumanInLoop } from '../../core/tool/human-in-loop.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { compileTools, type Tool, type ToolDefinition } from '../../core/tool/tool.ts';
import { type Problem, problemText } from '../../core/validate-shape.ts';
import { expectError } from './expect-error.ts';

export const OWNER = { product: 'shop', env: 'dev', database: 'main' } as const;

export interface ApprovalProcess {
  readonly service: ApprovalService;
  readonly kernel: Kernel;
  readonly warnings: string[];
}

/** Opens what one process has: an approval service on its own connection. */
export async function openApprovalProcess(
  backend: StorageBackend,
  kernel: Kernel = new Kernel(),
  rules: readonly StoredRule[] = [],
): Promise<ApprovalProcess> {
  const warnings: string[] = [];
  const service = await ApprovalService.open({
    backend,
    hooks: kernel.hooks,
    owner: OWNER,
    rules,
    warn: (message) => warnings.push(message),
  });
  return { service, kernel, warnings };
}

/** Compiles tools as an agent definition does. */
export function compileTestTools(...definitions: ToolDefinition[]): ReadonlyMap<string, Tool> {
  const problems: Problem[] = [];
  const tools = compileTools(definitions, ['tools'], problems);
  assert.deepEqual(problems.map(problemText), []);
  return tools;
}

/** Has a tool that refunds money, and records every refund. */
export class Bank {
  readonly paid: ToolParameters[] = [];
  readonly keys: string[] = [];

  tool(overrides: Partial<ToolDefinition> = {}): ToolDefinition {
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
      ...overrides,
    };
  }
}

function humanInLoop(overrides: Partial<HumanInLoop> = {}): HumanInLoop {
  return {
    enabled: true,
    alwaysRequireApproval: new Set(),
    approvalTimeout: 60_000,
    approvalValidFor: 60_000,
    ...overrides,
  };
}

export function createGate(
  { service }: ApprovalProcess,
  tools: ReadonlyMap<string, Tool>,
  overrides: {
    humanInLoop?: Partial<HumanInLoop>;
    routes?: readonly DeliveryRoute[];
    leaseMs?: number;
    agentTag?: string;
  } = {},
): ApprovalGate {
  const { humanInLoop: changes, agentTag = 'payouts', ...rest } = overrides;
  return new ApprovalGate(service, { agentTag, tools, humanInLoop: humanInLoop(changes), ...rest });
}

// per copy: used within one process.
let calls = 0;

/** A call of the tool of a `Bank`, with unique ids. */
export function refund(
  parameters: unknown = { order: '1234', amount: 20 },
  overrides: Partial<GateCall> = {},
): GateCall {
  calls += 1;
  return { tool: 'refund', parameters, executionId: `exe_${calls}`, toolCallId: `call_${calls}`, ...overrides };
}

export interface PendingCall {
  readonly request: ApprovalRequest;
  readonly outcome: Promise<CallOutcome>;
}

/** Starts a call through a gate, and returns it once its request is waiting. */
export async function startCall(gate: ApprovalGate, call: GateCall, options: CallOptions = {}): Promise<PendingCall> {
  let resolveRequest = (_: ApprovalRequest): void => {};
  const requested = new Promise<ApprovalRequest>((resolve) => {
    resolveRequest = resolve;
  });
  const outcome = gate.call(call, { ...options, onRequested: resolveRequest });
  const request = await Promise.race([
    requested,
    outcome.then((ended) => {
      throw new Error(`It ended without a request: ${JSON.stringify(ended)}`);
    }),
  ]);
  // A test may not wait for the outcome.
  outcome.catch(() => undefined);
  return { request, outcome };
}

export function approve(
  { service }: ApprovalProcess,
  { requestId, executionId }: Pick<ApprovalRequest, 'requestId' | 'executionId'>,
  modifiedParams?: ToolParameters,
  options: SignalOptions = { actor: 'ann' },
  reason?: string,
): Promise<SignalResult> {
  const payload = { requestId, reason, ...(modifiedParams && { modifiedParams }) };
  return decide(service, { executionId, signal: 'approve', payload }, options);
}

export function reject(
  { service }: ApprovalProcess,
  { requestId, executionId }: Pick<ApprovalRequest, 'requestId' | 'executionId'>,
  reason?: string,
  options: SignalOptions = { actor: 'ann' },
): Promise<SignalResult> {
  const payload = { requestId, ...(reason !== undefined && { reason }) };
  return decide(service, { executionId, signal: 'reject', payload }, options);
}

export async function readRow(
  { service }: ApprovalProcess,
  { requestId }: Pick<ApprovalRequest, 'requestId'>,
): Promise<RequestRow> {
  const row = await service.read(requestId);
  assert.ok(row, `${requestId} is in the store`);
  return row;
}

export async function trailOf({ service }: ApprovalProcess): Promise<AuditEntry[]> {
  const entries: AuditEntry[] = [];
  for await (const entry of auditTrail(service)) entries.push(entry);
  return entries;
}

/** Leaves a call that is approved and claimed by a dead process. */
export async function claimAndDie(
  app: ApprovalProcess,
  bank: Bank,
  call: ReturnType<typeof refund>,
  { leaseMs = 60_000, modifiedParams }: { readonly leaseMs?: number; readonly modifiedParams?: ToolParameters } = {},
): Promise<void> {
  const detach = new AbortController();
  const gate = createGate(app, compileTestTools(bank.tool()));
  const { request, outcome } = await startCall(gate, call, { signal: detach.signal });
  detach.abort(DETACH);
  await expectError(outcome, 'interrupted');
  await approve(app, request, modifiedParams);
  const row = await readRow(app, request);
  const claim = { token: 'dead', by: 'gone:1', beat: 0, leaseMs };
  await app.service.write(row, withClaim(row.record, claim, await app.service.clock.now()));
}
