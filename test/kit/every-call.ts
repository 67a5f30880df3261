/** With SVC_TEST_EVERY_CALL=1, tests interrupt at every call, and race as often as they ever did. */
export const TRIES_ALL = process.env.SVC_TEST_EVERY_CALL !== undefined;

/**
 * Every how many calls to interrupt: each takes a run of its own. The first one is chosen at random, so that the runs of CI
 * try all of them in time.
 */
export const everyCall = (step: number): number => (TRIES_ALL ? 1 : step);

/** The numbers of the calls, from 1, until the run that is interrupted has no more. */
export function* callsToInterrupt(step: number, isFinished: () => boolean): Generator<number> {
  const every = everyCall(step);
  for (let at = 1 + Math.floor(Math.random() * every); !isFinished(); at += every) yield at;
}
