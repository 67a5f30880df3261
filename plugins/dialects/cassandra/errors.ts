import { type ErrorCode, isSvcError, SvcError, sentences } from '../../../core/errors.ts';
import { TAKE_OVER } from '../../take-over.ts';

interface EngineError extends Error {
  /** Of the server: a number; of Node: a word. */
  readonly code?: number | string;
  readonly innerErrors?: Readonly<Record<string, unknown>>;
}

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next?: readonly string[];
}

const UNREACHABLE: Meaning = {
  code: 'connection_failed',
  message: 'The Cassandra cluster cannot be reached.',
  next: ['Check that its nodes run, and the hosts, ports and data center of the URL.'],
};
const FEW: Meaning = {
  code: 'connection_failed',
  message: 'Not enough nodes of the Cassandra cluster answer.',
  next: ['Look which are down: nodetool status'],
};
const REFUSED: Meaning = {
  code: 'authentication_failed',
  message: 'Cassandra refused the credentials.',
  next: ['Check the user and the password of the URL.'],
};
const LOST: Meaning = {
  code: 'connection_lost',
  message: 'Cassandra did not say what became of a statement.',
  next: ['Run the command again: it finds out what took effect.'],
};
const FAILED: Meaning = { code: 'migration_failed', message: 'Cassandra refused a statement.' };

const UNAUTHORIZED = 0x2100;
const ALREADY_EXISTS = 0x2400;

const MEANINGS: Readonly<Record<number | string, Meaning>> = {
  ECONNREFUSED: UNREACHABLE,
  ENOTFOUND: UNREACHABLE,
  EAI_AGAIN: UNREACHABLE,
  ETIMEDOUT: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  256: REFUSED, // 0x0100
  4096: FEW, // 0x1000 unavailable
  4097: FEW, // 0x1001 overloaded
  4098: UNREACHABLE, // 0x1002 starting
  4608: FEW, // 0x1200 read time-out
  4864: FEW, // 0x1300 read failure
  [UNAUTHORIZED]: {
    code: 'permission_denied',
    message: 'The database user may not do this.',
    next: ['Grant it: to migrate CREATE, ALTER, DROP, SELECT and MODIFY on the keyspace, to look SELECT.'],
  },
  [ALREADY_EXISTS]: {
    code: 'collection_exists',
    message: 'The table or index already exists.',
    next: TAKE_OVER,
  },
};

/** Answers of the server that say for certain that nothing was done. */
const DEFINITE: ReadonlySet<number | string | undefined> = new Set([
  0x0100,
  0x1000,
  0x1001,
  0x1002,
  0x2000,
  UNAUTHORIZED,
  0x2200,
  0x2300,
  ALREADY_EXISTS,
  'ECONNREFUSED',
  'ENOTFOUND',
]);

/** What stands behind an error of the driver that only says that no host could be asked. */
export function innermost(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const inner = Object.values((error as EngineError).innerErrors ?? {});
  return inner.find((one) => typeof codeOf(one) === 'number') ?? inner[0] ?? error;
}

/** The number of the server's answer, or Node's word. */
export function codeOf(error: unknown): number | string | undefined {
  return error instanceof Error ? (error as EngineError).code : undefined;
}

/** Whether a statement that ended in this error may have taken effect, or still may. */
export function isUnknown(error: unknown): boolean {
  const cause = isSvcError(error) ? error.cause : error;
  return cause instanceof Error && isEngines(cause) && !DEFINITE.has(codeOf(innermost(cause)));
}

/**
 * Nodes that answer, but not in time: of a write, of a read, of a lightweight transaction; or that fail to read because
 * they have not heard of a table yet that another one has just made.
 */
export function isTimeOut(error: unknown): boolean {
  const code = codeOf(innermost(isSvcError(error) ? error.cause : error));
  return code === 0x1100 || code === 0x1200 || code === 0x1300 || code === 0x1700;
}

/** The engine's error as a refusal, its code and words in `why`. What is none of the engine's stays as it is. */
export function refusal(error: unknown): unknown {
  if (!(error instanceof Error) || isSvcError(error)) return error;
  const cause = innermost(error);
  const code = codeOf(cause);
  const { name, message } = cause instanceof Error ? cause : error;
  if (name === 'AuthenticationError') return told(REFUSED, message, error, code);
  if (name === 'ArgumentError' || name === 'NoHostAvailableError') return told(UNREACHABLE, message, error, code);
  if (!isEngines(error)) return error;
  const meaning = (code === undefined ? undefined : MEANINGS[code]) ?? (isUnknown(error) ? LOST : FAILED);
  return told(meaning, typeof code === 'number' ? `0x${hex(code)}: ${message}` : message, error, code);
}

function told({ code, message, next = [] }: Meaning, why: string, cause: Error, engineCode?: number | string) {
  return new SvcError(code, message, {
    why,
    next,
    details:
      engineCode === undefined ? {} : { engineCode: typeof engineCode === 'number' ? hex(engineCode) : engineCode },
    cause,
  });
}

const hex = (code: number): string => code.toString(16).padStart(4, '0');

/** The driver's own classes, and what the network says through it; a TypeError of ours is a bug. */
function isEngines(error: EngineError): boolean {
  return (
    /^(ResponseError|OperationTimedOutError|DriverError|DriverInternalError|BusyConnectionError|NoHostAvailableError)$/.test(
      error.name,
    ) || typeof codeOf(innermost(error)) === 'string'
  );
}

/** The same refusal from a place before anything could be changed. */
export function unchanged(error: unknown): unknown {
  return isSvcError(error) && error.state === undefined ? error.with({ state: 'Nothing was changed.' }) : error;
}

/** Nobody could say yet what became of it: the next run finds out. */
export function lost(error: unknown): unknown {
  const told = refusal(error);
  if (!isSvcError(told)) return told;
  return new SvcError(LOST.code, 'It is not known yet what became of a statement.', {
    why: sentences(told),
    next: told.next.length > 0 ? told.next : (LOST.next ?? []),
    details: told.details,
    cause: error,
  });
}

/** The server's own words do not say "already exists". */
export function existing(table: string): SvcError {
  return new SvcError('collection_exists', `The table "${table}" already exists.`, { next: TAKE_OVER });
}
