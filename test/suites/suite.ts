import { isSvcError } from '../../core/errors.ts';

/**
 * The `test` of a runner: uvu's, `node:test`'s, vitest's, or one of your own. A runner that ends a test after a time of
 * its own, as vitest does, takes the third argument for it: milliseconds, a little more than the case gives itself.
 */
export interface TestFunction {
  (name: string, body: () => Promise<void>, timeoutMs?: number): unknown;
  /** Hears of a case that is skipped, and why; where it is absent, both are printed. */
  readonly skipped?: (name: string, reason: string) => void;
}

export interface UnderTest {
  /** Begins the name of every case. */
  readonly name: string;
  /** Why nothing can be tried here, or names of cases that cannot hold, each with the reason. */
  readonly skip?: string | Readonly<Record<string, string>> | undefined;
}

export interface CaseOptions {
  /** The promise that the case holds somebody to, a whole sentence; without it the name of the case says it. */
  readonly promise?: string;
  /** Default 120,000. */
  readonly timeoutMs?: number;
}

/** Declares a case; tells whether it is one that runs. */
export type DeclareCase = (name: string, body: () => unknown, options?: CaseOptions) => boolean;

const TIMEOUT_MS = 120_000;
/** Our own limit is told first. */
const GRACE_MS = 2_000;

/** A case that failed: what the contract asks for, then what was found instead. */
export class ContractBroken extends Error {
  override readonly name = 'ContractBroken';

  constructor(asks: string, error: unknown) {
    super(`The contract asks: ${asks}\n\n${describeTestError(error)}`, isAssertion(error) ? undefined : { cause: error });
    const frames = (error instanceof Error ? error.stack : undefined)
      ?.split('\n')
      .filter((line) => /^ {4}at /.test(line));
    if (frames) this.stack = [`${this.name}: ${this.message}`, ...frames].join('\n');
  }
}

/** Declares the cases of a suite on whatever runner `test` belongs to. Throws where `skip` names no case of it. */
export function suite(test: TestFunction, { name: subject, skip = {} }: UnderTest, declare: (on: DeclareCase) => void): void {
  const known = new Set<string>();
  declare((name, body, { promise = `${name}.`, timeoutMs = TIMEOUT_MS } = {}) => {
    const title = `${subject}: ${name}`;
    const reason = typeof skip === 'string' ? skip : Object.hasOwn(skip, name) ? skip[name] : undefined;
    known.add(name);
    if (reason !== undefined) {
      const skipped = test.skipped ?? ((name, reason) => console.log(`# skipped: ${name}: ${reason}`));
      skipped(title, reason);
      return false;
    }
    const held = async () => {
      try {
        await withTimeout(timeoutMs, `the case "${title}"`, body);
      } catch (error) {
        throw new ContractBroken(promise, error);
      }
    };
    test(title, held, timeoutMs + GRACE_MS);
    return true;
  });
  const strange = typeof skip === 'string' ? [] : Object.keys(skip).filter((name) => !known.has(name));
  if (strange.length > 0) {
    throw new Error(`"skip" names what is no case: ${strange.join(', ')}. The cases are: ${[...known].join(', ')}.`);
  }
}

/** It has told everything: its cause would be itself once more. */
function isAssertion(error: unknown): boolean {
  return error instanceof Error && error.name === 'AssertionError';
}

/** An error in a line: its code, what, why and what next. */
export function describeTestError(error: unknown): string {
  if (isSvcError(error)) return [`${error.code}: ${error.message}`, error.why, ...error.next].filter(Boolean).join(' ');
  return error instanceof Error ? error.message : `threw ${String(error)}`;
}

/** Runs a body, and gives up after so many milliseconds: what it still does is then nobody's. */
export async function withTimeout(timeoutMs: number, what: string, body: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not end within ${timeoutMs} ms`)), timeoutMs);
  });
  try {
    await Promise.race([Promise.resolve().then(body), late]);
  } finally {
    clearTimeout(timer);
  }
}
