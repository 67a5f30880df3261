import { isSvcError } from '../../core/errors.ts';

/**
 * The `test` function of a test runner, such as uvu, `node:test` or vitest. `timeoutMs` is slightly longer than the
 * timeout of the case itself, for runners with a timeout of their own, such as vitest.
 */
export interface TestFunction {
  (name: string, body: () => Promise<void>, timeoutMs?: number): unknown;
  /** Called for every skipped case; by default the name and the reason are printed, and `skip` is called. */
  readonly skipped?: (name: string, reason: string) => void;
  /** Declares a case that does not run, so that the runner counts it. */
  skip?(name: string, body: () => Promise<void>): unknown;
}

export interface UnderTest {
  /** The prefix of every case name. */
  readonly name: string;
  /** Why the whole suite is skipped, or the reasons for single cases, by case name. */
  readonly skip?: string | Readonly<Record<string, string>> | undefined;
  /** The least time that each case may take, in milliseconds, for an engine that answers slowly. Default 120,000, more for some cases. */
  readonly timeoutMs?: number;
}

export interface CaseOptions {
  /** The rule of the contract that the case checks, as a sentence. Default: the name of the case. */
  readonly promise?: string;
  /** Default 120,000. */
  readonly timeoutMs?: number;
  /** What is running, for the message of a time-out. */
  running?(): string;
}

/** Declares a case. Returns false if the case is skipped. */
export type DeclareCase = (name: string, body: () => unknown, options?: CaseOptions) => boolean;

const TIMEOUT_MS = 120_000;
/** The case times out before the runner does, so that its own message is reported. */
const GRACE_MS = 2_000;

/** A failed case: the rule of the contract, then what was found. */
export class ContractBroken extends Error {
  override readonly name = 'ContractBroken';

  constructor(rule: string, error: unknown) {
    super(
      `The contract requires: ${rule}\n\n${describeTestError(error)}`,
      isAssertion(error) ? undefined : { cause: error },
    );
    const frames = (error instanceof Error ? error.stack : undefined)
      ?.split('\n')
      .filter((line) => /^ {4}at /.test(line));
    if (frames) this.stack = [`${this.name}: ${this.message}`, ...frames].join('\n');
  }
}

/** Declares the cases of a suite with a test runner. Throws if `skip` contains an unknown case. */
export function suite(
  test: TestFunction,
  { name: subject, skip = {}, timeoutMs: leastMs = 0 }: UnderTest,
  declare: (on: DeclareCase) => void,
): void {
  const names = new Set<string>();
  declare((name, body, { promise = `${name}.`, timeoutMs: ownMs = TIMEOUT_MS, running } = {}) => {
    const title = `${subject}: ${name}`;
    const timeoutMs = Math.max(ownMs, leastMs);
    const reason = typeof skip === 'string' ? skip : Object.hasOwn(skip, name) ? skip[name] : undefined;
    names.add(name);
    if (reason !== undefined) {
      reportSkipped(test, title, reason);
      return false;
    }
    const runCase = async () => {
      try {
        await withTimeout(timeoutMs, `the case "${title}"`, body, running);
      } catch (error) {
        throw new ContractBroken(promise, error);
      }
    };
    test(title, runCase, timeoutMs + GRACE_MS);
    return true;
  });
  const unknown = typeof skip === 'string' ? [] : Object.keys(skip).filter((name) => !names.has(name));
  if (unknown.length > 0) {
    throw new Error(`"skip" contains unknown cases: ${unknown.join(', ')}. The cases are: ${[...names].join(', ')}.`);
  }
}

/** Gives the runner the name and the reason of what is left out. */
export function reportSkipped(test: TestFunction, name: string, reason: string): void {
  if (test.skipped) {
    test.skipped(name, reason);
    return;
  }
  console.log(`# skipped: ${name}: ${reason}`);
  test.skip?.(name, async () => {});
}

/** The message of an assertion is complete: a cause would repeat it. */
function isAssertion(error: unknown): boolean {
  return error instanceof Error && error.name === 'AssertionError';
}

/** An error on one line: code, message, reason and next steps. */
export function describeTestError(error: unknown): string {
  if (isSvcError(error))
    return [`${error.code}: ${error.message}`, error.why, error.where, ...error.next].filter(Boolean).join(' ');
  return error instanceof Error ? error.message : `threw ${String(error)}`;
}

/** Runs a function, and rejects after `timeoutMs`. The function is not stopped. */
export async function withTimeout(
  timeoutMs: number,
  what: string,
  body: () => unknown,
  running?: () => string,
): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const message = () => `${what} did not end within ${timeoutMs} ms${running ? `: ${running()}` : ''}`;
    timer = setTimeout(() => reject(new Error(message())), timeoutMs);
  });
  try {
    await Promise.race([Promise.resolve().then(body), late]);
  } finally {
    clearTimeout(timer);
  }
}
