import { hostname } from 'node:os';
import type { Tool } from '../agent/tool.ts';
import { SvcError } from '../errors.ts';
import type { Route } from './announce.ts';
import type { ApprovalDesk } from './desk.ts';
import { isOutage, mayPass } from './home.ts';
import type { ApprovalRecord, ApprovalRequest } from './request.ts';
import type { Seat } from './waiting.ts';
import { keptWords } from './words.ts';

/** A reason to abort with that leaves the request waiting: another process may go on with it. */
export const DETACH: unique symbol = Symbol('svc.detach');

/** As `DETACH`, by a caller who may come back: the result of a tool that runs is stored, unless he has gone for good. */
export class Interruption extends Error {
  readonly isForGood: () => boolean;

  constructor(isForGood: () => boolean) {
    super('The run was interrupted.');
    this.isForGood = isForGood;
  }
}

/** What a caller wants to say and hear beside the call. @experimental */
export interface CallOptions {
  /** Aborting cancels a request that waits, and is handed to a handler that runs. */
  readonly signal?: AbortSignal;
  /**
   * True: the caller alone owns the execution now, and whoever claimed its calls before is dead. False: the call was
   * never put before.
   */
  readonly resumed?: boolean;
  /** Once the tool may run, before it is claimed. A throw keeps it from running. */
  readonly beforeRun?: () => Promise<void>;
  /** Nobody waits for what it does; what it throws, or its promise rejects with, is a warning. */
  readonly onRequested?: (request: ApprovalRequest) => unknown;
  /** As `onRequested`. A time-out and a cancellation are decisions too. */
  readonly onDecided?: (record: ApprovalRecord) => unknown;
}

/** A call that has a request, on its way to an outcome. */
export interface Passage {
  readonly desk: ApprovalDesk;
  /** Undefined where the agent no longer has it. */
  readonly tool: Tool | undefined;
  readonly requestId: string;
  /** What this process put to the gate, where it did: the store is not asked what that was. */
  readonly digest: string | undefined;
  readonly routes: readonly Route[];
  /** Milliseconds after which a claim that gives no sign is a dead one's. */
  readonly leaseMs: number;
  readonly options: CallOptions;
}

/** How this process is named in events and claims. */
export const PROCESS = `${hostname()}:${process.pid}`;

const OUTAGE_PAUSE_MS = 1_000;

/** A store that cannot be reached keeps nobody from waiting: it may come back before the deadline. */
export function patiently<T>(passage: Passage, seat: Seat, work: () => Promise<T>): Promise<T> {
  return repeated(seat, work, (error) => {
    if (!isOutage(error)) throw error;
    refuseDetached(passage);
  });
}

/** What a tool gave is known here alone: whatever the store refuses it with for now, it is offered again. */
export function insistently<T>(passage: Passage, seat: Seat, work: () => Promise<T>): Promise<T> {
  const { desk, requestId } = passage;
  let isTold = false;
  return repeated(seat, work, (error) => {
    if (!mayPass(error)) throw error;
    if (hasLeft(passage)) throw left(passage);
    if (!isTold) desk.warn(`The result of ${requestId} could not be stored, and is tried again: ${error}`);
    isTold = true;
  });
}

/** `refuse` throws where `work` is not to be tried again. */
async function repeated<T>(seat: Seat, work: () => Promise<T>, refuse: (error: unknown) => void): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      refuse(error);
      await seat.changed(performance.now() + OUTAGE_PAUSE_MS);
      refuse(error);
    }
  }
}

export function refuseDetached(passage: Passage): void {
  if (passage.desk.closing.aborted || lettingGo(passage.options.signal) !== undefined) throw left(passage);
}

function hasLeft({ desk, options }: Passage): boolean {
  return desk.closing.aborted || lettingGo(options.signal) === 'for good';
}

/** Whether a signal says that its owner lets go, or may come back; what it stops is then left as it is in the store. */
export function lettingGo(signal: AbortSignal | undefined): 'for good' | 'for now' | undefined {
  if (!signal?.aborted) return undefined;
  const { reason } = signal;
  if (reason instanceof Interruption) return reason.isForGood() ? 'for good' : 'for now';
  return reason === DETACH ? 'for good' : undefined;
}

function left({ desk, requestId }: Passage): SvcError {
  return new SvcError('interrupted', 'The call was left before it ended.', {
    why: desk.closing.aborted ? 'The client was closed.' : 'The caller let go of it.',
    state: 'Its request stays as it is in the store.',
    next: ['Put the same call to the gate again: it attaches to the request.'],
    details: { requestId },
  });
}

/** Why a call was cancelled. */
export function reasonOf({ reason }: { readonly reason: unknown }): string {
  return keptWords(reason);
}
