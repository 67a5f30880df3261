import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { GateCall } from '../../core/approval/call.ts';
import type { SignalOptions } from '../../core/approval/decide.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import type { ToolParameters } from '../../core/tool/parameters.ts';
import { bundleScript } from './bundle.ts';

/** A command for a process with a gate. */
export type GateCommand =
  | { readonly do: 'id' }
  | {
      readonly do: 'call';
      readonly call: GateCall;
      readonly resumed?: boolean;
      readonly idempotent?: boolean;
      readonly ungated?: Ungated;
    }
  | {
      readonly do: 'approve';
      readonly request: RequestKey;
      readonly modifiedParams?: ToolParameters;
      readonly options?: SignalOptions;
    }
  | { readonly do: 'reject'; readonly request: RequestKey; readonly options?: SignalOptions };

/** Settings under which the tool needs no approval; the call is then made as `svc.gate` does. */
type Ungated = 'disabled' | 'unconfirmed';

type RequestKey = Pick<ApprovalRequest, 'requestId' | 'executionId'>;

export interface GateReply {
  readonly value?: unknown;
  /** The code of the error. */
  readonly error?: string;
}

export interface GateProcess {
  readonly child: ChildProcess;
  /** Rejects if the process dies before it replies. */
  send(command: GateCommand): Promise<GateReply>;
  readonly ended: Promise<NodeJS.Signals | number | null>;
  stop(): Promise<void>;
}

let script: Promise<string> | undefined;

/** Starts a process that kills itself at a point, such as `claimed` or `store:3` (before its third call of the store). */
export async function startGateProcess(url: string, killPoint = ''): Promise<GateProcess> {
  script ??= bundleScript('gate-process.ts');
  const child = fork(await script, [url, killPoint], { execArgv: [] });
  const pending = new Map<number, (report: GateReply) => void>();
  let number = 0;
  const ended = once(child, 'exit').then(([code, signal]) => signal ?? code);
  const ready = once(child, 'message');
  child.on('message', (message: GateReply & { readonly number: number }) => pending.get(message.number)?.(message));
  await Promise.race([ready, ended]);
  return {
    child,
    ended,
    send(command) {
      number += 1;
      const ownNumber = number;
      const reply = new Promise<GateReply>((resolve) => {
        pending.set(ownNumber, resolve);
      });
      if (child.connected) child.send({ ...command, number: ownNumber }, () => undefined);
      return Promise.race([
        reply,
        ended.then((status) => {
          throw new Error(`It ended with ${status}.`);
        }),
      ]);
    },
    async stop() {
      if (child.connected) child.disconnect();
      await ended;
    },
  };
}
