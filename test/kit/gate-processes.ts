import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { GateCall } from '../../core/approval/call.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { bundled } from './bundled.ts';

/** What a gate in a process of its own can be told to do. */
export type Order =
  | { readonly do: 'id' }
  | { readonly do: 'call'; readonly call: GateCall; readonly resumed?: boolean; readonly idempotent?: boolean }
  | { readonly do: 'approve'; readonly request: Named; readonly modifiedParams?: ToolParameters }
  | { readonly do: 'reject'; readonly request: Named };

type Named = Pick<ApprovalRequest, 'requestId' | 'executionId'>;

export interface Report {
  readonly value?: unknown;
  /** The code of a refusal. */
  readonly refused?: string;
}

export interface GateProcess {
  readonly child: ChildProcess;
  /** Rejects when the process dies before it answers. */
  tell(order: Order): Promise<Report>;
  readonly ended: Promise<NodeJS.Signals | number | null>;
  stop(): Promise<void>;
}

let script: Promise<string> | undefined;

/** Starts one that dies at `where`: `claimed`, `store:3` (before its third call to the store), … */
export async function gateProcess(url: string, where = ''): Promise<GateProcess> {
  script ??= bundled('gate-process.ts');
  const child = fork(await script, [url, where], { execArgv: [] });
  const waiting = new Map<number, (report: Report) => void>();
  let number = 0;
  const ended = once(child, 'exit').then(([code, signal]) => signal ?? code);
  const ready = once(child, 'message');
  child.on('message', (message: Report & { readonly number: number }) => waiting.get(message.number)?.(message));
  await Promise.race([ready, ended]);
  return {
    child,
    ended,
    tell(order) {
      number += 1;
      const mine = number;
      const answered = new Promise<Report>((resolve) => {
        waiting.set(mine, resolve);
      });
      if (child.connected) child.send({ ...order, number: mine }, () => undefined);
      return Promise.race([
        answered,
        ended.then((how) => {
          throw new Error(`It ended with ${how}.`);
        }),
      ]);
    },
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
