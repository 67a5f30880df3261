import { AsyncLocalStorage } from 'node:async_hooks';
import { SvcError } from '../errors.ts';
import { processWide } from '../process-wide.ts';

/** A handler of a gated call that runs in this process. */
interface RunningHandler {
  /** The token of its claim. */
  readonly token: string;
  /** Tokens of the claims whose calls it has made and not yet got a result of. */
  readonly awaits: Set<string>;
}

const handlers = processWide('running-handlers', () => ({
  byToken: new Map<string, RunningHandler>(),
  current: new AsyncLocalStorage<RunningHandler>(),
}));

/** Runs a handler, so that a call which it makes and which would wait for its own result is found. */
export async function runAsHandler<T>(token: string, work: () => Promise<T>): Promise<T> {
  const { byToken, current } = handlers;
  const caller = current.getStore();
  const handler: RunningHandler = { token, awaits: new Set() };
  byToken.set(token, handler);
  caller?.awaits.add(token);
  try {
    return await current.run(handler, work);
  } finally {
    byToken.delete(token);
    caller?.awaits.delete(token);
    // While a context is in use, Node before 24 spends three times as long on every promise of the process.
    if (byToken.size === 0) current.disable();
  }
}

/**
 * Notes that the handler from which the caller runs, if any, waits for the call under a claim. Returns a function that
 * ends this. Throws `call_circular` if that call waits for the handler.
 */
export function awaitHandler(token: string, requestId: string): () => void {
  const handler = handlers.current.getStore();
  if (!handler) return () => {};
  if (awaits(token, handler.token)) {
    throw new SvcError('call_circular', 'The call would wait for its own result.', {
      why: `It continues with the request ${requestId}, whose handler is running and has made this call.`,
      state: 'The handler is still running, and nothing else ran.',
      details: { requestId },
    });
  }
  handler.awaits.add(token);
  return () => void handler.awaits.delete(token);
}

/** Whether the call under the claim `from` is the one under `to`, or waits for it, directly or through others. */
function awaits(from: string, to: string, seen = new Set<string>()): boolean {
  if (from === to) return true;
  if (seen.has(from)) return false;
  seen.add(from);
  for (const token of handlers.byToken.get(from)?.awaits ?? []) if (awaits(token, to, seen)) return true;
  return false;
}
