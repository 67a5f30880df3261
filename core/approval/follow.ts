import { onAbort } from '../on-abort.ts';
import { announce } from './announce.ts';
import type { Row } from './desk.ts';
import type { CallOutcome } from './outcome.ts';
import { type Passage, patiently, refuseDetached } from './passage.ts';
import { requestOf } from './view.ts';
import type { Seat } from './waiting.ts';
import { type Step, Walk } from './walk.ts';

/**
 * Follows a request to its end, whoever decides it, and runs the tool if that is for this call to do. Every step is
 * worked out from the row as it is read and written by compare-and-set: what was slept through, or done by others in
 * between, changes nothing. The seat was taken before the row was read, or a decision in between would not be heard of.
 */
export async function follow(given: Passage, seat: Seat, first: Row, made: boolean): Promise<CallOutcome> {
  // What is cancelled as it is made goes to nobody.
  const passage = made && given.options.signal?.aborted ? { ...given, routes: [] } : given;
  const { desk, requestId, options } = passage;
  const settled = new AbortController();
  const wake = () => desk.room.hint(requestId);
  const deafen = options.signal && onAbort(options.signal, wake);
  const walk = new Walk(passage, seat);
  let row: Row | undefined = first;
  try {
    if (first.record.status === 'waiting' && options.onRequested) {
      // Not waited for: he may wait for the decision himself.
      void desk.tell('onRequested of a call', () => options.onRequested?.(requestOf(first.record)));
    }
    const isTold = passage.routes.length > 0 || desk.kernel.hooks.approvalRequested.isUsed();
    for (;;) {
      refuseDetached(passage);
      const current: Row | undefined = row;
      if (isTold && current?.record.status === 'waiting') {
        const told = { routes: passage.routes, made, signal: settled.signal };
        void desk.tell('Telling the channels', () => announce(desk, current, told));
      }
      const step: Step = await patiently(passage, seat, () => walk.step(current));
      if ('outcome' in step) return step.outcome;
      if (step.again === undefined) await seat.changed(step.at);
      else if (step.again !== 'read') {
        row = step.again;
        continue;
      }
      refuseDetached(passage);
      row = await patiently(passage, seat, () => desk.read(requestId));
    }
  } finally {
    walk.end();
    settled.abort('decided');
    deafen?.();
    seat.leave();
    if (row?.record.status !== 'waiting') desk.announced.delete(requestId);
    // Who else waits for it here takes over telling of it.
    else desk.room.hint(requestId);
  }
}
