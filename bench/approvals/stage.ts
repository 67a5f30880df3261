import type { StorageBackend } from '../../core/approval/backend.ts';
import type { GateCall } from '../../core/approval/call.ts';
import { ApprovalGate } from '../../core/approval/gate.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import type { StoredRule } from '../../core/approval/rule.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import { Kernel } from '../../core/kernel.ts';
import { compileTools, type Tool, type ToolDefinition } from '../../core/tool/tool.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';

export const PARAMETERS = { orderId: '1234', amount: 20, note: 'Arrived broken, the customer wants it back.' };

export const refundTool = (handler: ToolDefinition['handler'], requiresConfirmation = true) => ({
  tag: 'refund',
  description: 'Pays money back to a customer. Cannot be undone.',
  requiresConfirmation,
  parameters: {
    orderId: { type: 'string', required: true },
    amount: { type: 'number', required: true, minimum: 0 },
    note: { type: 'string' },
  } as const,
  handler,
});

export function toolsWith(handler: ToolDefinition['handler'], requiresConfirmation = true): ReadonlyMap<string, Tool> {
  const problems: never[] = [];
  const tools = compileTools([refundTool(handler, requiresConfirmation)], ['tools'], problems);
  if (problems.length > 0) throw new Error(JSON.stringify(problems));
  return tools;
}

export async function serviceOn(backend: StorageBackend, rules: readonly StoredRule[] = []): Promise<ApprovalService> {
  return ApprovalService.open({
    backend,
    hooks: new Kernel().hooks,
    owner: { product: 'bench', env: 'dev', database: 'main' },
    rules,
  });
}

export const connect = (url: string): Promise<StorageBackend> => postgresql.connect(url, {});

export function gateOn(
  service: ApprovalService,
  tools: ReadonlyMap<string, Tool>,
  approvalTimeout = 300_000,
): ApprovalGate {
  const humanInLoop = {
    enabled: true,
    alwaysRequireApproval: new Set<string>(),
    approvalTimeout,
    approvalValidFor: approvalTimeout,
  };
  return new ApprovalGate(service, { agentTag: 'payouts', tools, humanInLoop });
}

let count = 0;

export function nextCall(more: Partial<GateCall> = {}): GateCall {
  count += 1;
  return { tool: 'refund', parameters: PARAMETERS, executionId: `exe_${process.pid}_${count}`, ...more };
}

/** Resolves when the request is stored and waits. */
export function storeRequest(
  gate: ApprovalGate,
  call: GateCall,
): Promise<{ request: ApprovalRequest; outcome: Promise<unknown> }> {
  return new Promise((resolve, reject) => {
    const outcome = gate.call(call, { onRequested: (request) => resolve({ request, outcome }) });
    outcome.catch(reject);
  });
}

export interface Spread {
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (share: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99) };
}

/** Runs `work` `total` times in `width` concurrent lanes; returns the number per second. */
export async function perSecond(
  total: number,
  width: number,
  work: (lane: number) => Promise<unknown>,
): Promise<number> {
  let left = total;
  const startedAt = performance.now();
  const runLane = async (lane: number): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await work(lane);
    }
  };
  await Promise.all(Array.from({ length: width }, (_, lane) => runLane(lane)));
  return (total / (performance.now() - startedAt)) * 1000;
}
