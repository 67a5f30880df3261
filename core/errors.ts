import type { ErrorCode } from './error-codes.ts';

export interface ErrorFacts {
  /** Why it happened, including the engine's own code and message. */
  readonly why?: string;
  /** The state after the failure. */
  readonly state?: string;
  /** What to do next: one command or sentence each. */
  readonly next?: readonly string[];
  /** The file, with line and column if known. */
  readonly where?: string;
  /** Data for programs. Never contains a secret. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/** Every expected failure: a stable code, what happened, why, and what to do next. Any other error is a bug. */
export class SvcError extends Error {
  override readonly name = 'SvcError';
  readonly code: ErrorCode;
  readonly why: string | undefined;
  readonly state: string | undefined;
  readonly next: readonly string[];
  readonly where: string | undefined;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: ErrorCode, message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.code = code;
    this.why = facts.why;
    this.state = facts.state;
    this.next = facts.next ?? [];
    this.where = facts.where;
    this.details = facts.details ?? {};
  }

  /** A copy with more facts, for code that catches the error and knows its context. */
  with(facts: ErrorFacts): SvcError {
    return new SvcError(this.code, this.message, {
      ...(this.why !== undefined && { why: this.why }),
      ...(this.state !== undefined && { state: this.state }),
      ...(this.where !== undefined && { where: this.where }),
      next: this.next,
      cause: this.cause,
      ...facts,
      details: { ...this.details, ...facts.details },
    });
  }
}

/** Use instead of `instanceof`, which is false when two copies of the SDK are loaded. */
export function isSvcError(error: unknown): error is SvcError {
  return error instanceof Error && error.name === 'SvcError' && 'code' in error;
}

/** The message and the reason of an error as one text. */
export function describeError({ message, why }: Pick<SvcError, 'message' | 'why'>): string {
  return [message, why].filter(Boolean).join(' ');
}

/** The message of any thrown value. Never throws. */
export function errorMessage(thrown: unknown): string {
  try {
    const message = typeof thrown === 'object' && thrown !== null && 'message' in thrown ? thrown.message : thrown;
    if (typeof message === 'string') return message;
    if (message !== thrown && message !== undefined) return JSON.stringify(message);
    return thrown instanceof Error ? thrown.name : String(thrown);
  } catch {
    return 'An error without a readable message was thrown.';
  }
}

/** The message of any thrown value for a warning, with the first thing to do, and no period at its end. */
export function messageWithNext(thrown: unknown): string {
  const message = errorMessage(thrown).replace(/\.$/, '');
  const [next] = isSvcError(thrown) ? thrown.next : [];
  return next === undefined ? message : `${message} (next: ${next.replace(/\.$/, '')})`;
}

/** Any thrown value for a log: its message, the reason, and where it happened, such as a statement without its values. */
export function describeThrown(thrown: unknown): string {
  if (!isSvcError(thrown)) return errorMessage(thrown);
  return `${describeError(thrown)}${thrown.where === undefined ? '' : ` (${thrown.where})`}`;
}

/** The code of an error of the operating system, such as `ENOENT`. */
export function systemErrorCode(error: unknown): string | undefined {
  return error instanceof Error && 'syscall' in error && 'code' in error ? String(error.code) : undefined;
}

/** A word quoted for a POSIX shell, where it needs quotes. */
export function shellQuote(word: string): string {
  return /^[\w./:@=-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
