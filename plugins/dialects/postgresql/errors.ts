import type { Statement } from '../../../core/dialect.ts';
import { type ErrorCode, isSvcError, SvcError } from '../../../core/errors.ts';
import { isTlsError } from '../../sql/tls-error.ts';
import { TAKE_OVER } from '../../take-over.ts';

interface EngineError extends Error {
  readonly code?: string;
  readonly detail?: string;
  readonly hint?: string;
  readonly table?: string;
  readonly column?: string;
  readonly constraint?: string;
  /** Through which calls it came to the error; absent where the statement itself is refused. */
  readonly where?: string;
}

/** The engine's five-character code, or Node's. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as EngineError).code : undefined;
}

/** What a statement of ours raises where an enum turns out to be a type of the server. */
export const NATIVE_ENUM = 'SVC01';
/** The same where an index or a constraint would go with a field that is not its only one. */
export const FIELD_SHARED = 'SVC02';

export const LOCK_NOT_HAD = '55P03';
const DENIED = '42501';
/** A relation of that name exists. */
export const NAME_TAKEN = '42P07';
const PASSING: ReadonlySet<string | undefined> = new Set([LOCK_NOT_HAD, '40P01', '40001']);

/** Another session was in the way and nothing was done: the same text may pass in a moment. */
export function isPassing(error: unknown): boolean {
  return PASSING.has(codeOf(error));
}

/** A statement makes no sense to the server: it names what is not there, or is not SQL. */
export function isNotUnderstood(error: unknown): boolean {
  const code = codeOf(error);
  return code?.startsWith('42') === true && code !== DENIED;
}

/**
 * A statement outside a transaction was refused before it began: by what it says, and not by something that it called,
 * which may have committed by then. Several in one text are one transaction, in which none can be that commits.
 */
export function isRefusedWhole(error: unknown): boolean {
  const code = codeOf(error);
  const isOfText = code?.startsWith('42') === true || code === '25001' || code === '0A000';
  return isOfText && (error as EngineError).where === undefined;
}

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next?: readonly string[];
}

const UNREACHABLE: Meaning = {
  code: 'connection_failed',
  message: 'The PostgreSQL server cannot be reached.',
  next: ['Check that the server runs, and the host and port of the URL.'],
};
const FULL: Meaning = {
  code: 'connection_failed',
  message: 'The PostgreSQL server takes no more connections.',
  next: ['Close others, or raise the limit: max_connections, or CONNECTION LIMIT of the role or database.'],
};
const REFUSED: Meaning = {
  code: 'authentication_failed',
  message: 'PostgreSQL refused the credentials.',
  next: ['Check the user and the password of the URL.'],
};
const LOST: Meaning = {
  code: 'connection_lost',
  message: 'The connection to PostgreSQL was lost.',
  next: ['Run the command again: it finds out what was committed.'],
};
/** What the parameters of a URL can do about it. */
const TLS: readonly string[] = [
  'A certificate that Node does not know: sslrootcert=<file>, or sslmode=no-verify to encrypt without looking at it.',
  'A server without TLS: sslmode=disable',
];
const POOLED: Meaning = {
  code: 'pooler_unsupported',
  message: 'A pooler stands before PostgreSQL: the migration lock would not hold.',
  next: ["Use the server's own port in the URL."],
};
export const pooled = (why: string): SvcError =>
  new SvcError(POOLED.code, POOLED.message, { why, next: POOLED.next ?? [] });

function violation(next: string): Meaning {
  return { code: 'data_violates', message: 'Rows in the table do not allow the change.', next: [next] };
}

const MEANINGS: Readonly<Record<string, Meaning>> = {
  ECONNREFUSED: UNREACHABLE,
  ENOTFOUND: UNREACHABLE,
  EAI_AGAIN: UNREACHABLE,
  ETIMEDOUT: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ENOENT: UNREACHABLE,
  '53300': FULL,
  '57P03': UNREACHABLE,
  ECONNRESET: LOST,
  EPIPE: LOST,
  '57P01': LOST,
  '57P02': LOST,
  '57P05': LOST,
  '25P03': LOST,
  '08P01': POOLED,
  '3D000': {
    code: 'database_missing',
    message: 'The database does not exist on the server.',
    next: ['Create it, or correct the URL.'],
  },
  [DENIED]: {
    code: 'permission_denied',
    message: 'The database user may not do this.',
    next: [
      'Use a user that may, or grant it: to migrate CREATE and USAGE on the schema and the tables themselves, to look SELECT on the tables.',
    ],
  },
  '25006': {
    code: 'permission_denied',
    message: 'The database session is read-only.',
    next: ['Use the primary server, or a user and a database without default_transaction_read_only.'],
  },
  [NAME_TAKEN]: {
    code: 'collection_exists',
    message: 'The table or index already exists.',
    next: TAKE_OVER,
  },
  '42710': { code: 'constraint_exists', message: 'The constraint already exists.' },
  '42701': { code: 'field_exists', message: 'The field already exists.' },
  '42P01': { code: 'collection_unknown', message: 'The table does not exist.' },
  '2BP01': {
    code: 'collection_referenced',
    message: 'Something else in the database depends on it.',
    next: ['Drop what depends on it first: with cascade svc drops foreign keys of the same schema, and nothing else.'],
  },
  [LOCK_NOT_HAD]: {
    code: 'migration_failed',
    message: 'Another session keeps a lock on the table.',
    next: ['Look who: SELECT * FROM pg_stat_activity', 'Run the command again when it is gone.'],
  },
  '23502': violation(
    'Give the field a default; or add it without required, fill the rows in a migration, and require it in the next.',
  ),
  '23503': violation('Correct or delete the rows that point at nothing.'),
  '23505': violation('Remove the duplicates, or leave uniqueness out.'),
  '23514': violation('Correct or delete the rows that break the check.'),
  [NATIVE_ENUM]: {
    code: 'not_supported',
    message: 'A field has an enum type of the server, which svc does not change.',
    next: [
      'Put the statement above into a raw operation before this one: it makes the field what svc makes.',
      'A check of your own by the name that it drops has to be added under another one.',
    ],
  },
  [FIELD_SHARED]: {
    code: 'field_in_use',
    message: 'The field cannot be dropped: something uses it.',
    next: [
      'Drop that first: what migrations made by dropIndex or dropConstraint before this operation.',
      'What they did not make with the statement above: in a raw operation, or by hand.',
    ],
  },
  '42883': { code: 'migration_failed', message: 'The server does not know a function that is used.' },
};

const CLASSES: Readonly<Record<string, Meaning>> = {
  '08': LOST,
  '28': REFUSED,
  '53': { code: 'migration_failed', message: 'PostgreSQL has not enough disk, memory or connections left.' },
  '23': { code: 'data_violates', message: 'Rows in the table do not allow the change.' },
  '22': { code: 'data_violates', message: 'A value does not allow the change.' },
};

const FAILED: Meaning = { code: 'migration_failed', message: 'PostgreSQL refused a statement.' };

/** The engine's error as a refusal, its code and words in `why`. What is none of the engine's stays as it is. */
export function refusal(error: unknown): unknown {
  if (!(error instanceof Error) || isSvcError(error)) return error;
  const { code, hint } = error as EngineError;
  const holdsRow = code?.startsWith('23') === true;
  const detail = holdsRow ? whereOf(error) : (error as EngineError).detail;
  if (code === undefined && error.message.startsWith('SASL')) {
    return new SvcError(REFUSED.code, REFUSED.message, { why: error.message, next: REFUSED.next ?? [], cause: error });
  }
  if (code === undefined && !/connection|timeout|ended|closed/i.test(error.message)) return error;
  const meaning = code === undefined ? (/timeout/i.test(error.message) ? UNREACHABLE : LOST) : meaningOf(code);
  if (code !== undefined && meaning === FAILED && !/^[0-9A-Z]{5}$/.test(code)) return error;
  const words = [code === undefined ? error.message : `${code}: ${error.message}`, detail, hint]
    .filter(Boolean)
    .join(' ');
  const generator = code === '42883' && error.message.includes('gen_random_uuid');
  return new SvcError(meaning.code, meaning.message, {
    why: generator ? `${words} PostgreSQL has gen_random_uuid() from version 13 on.` : words,
    next: generator ? ['CREATE EXTENSION pgcrypto'] : (meaning.next ?? []),
    details: code === undefined ? {} : { engineCode: code },
    cause: holdsRow ? withoutRow(error) : error,
  });
}

/** What a statement was refused with: a table that is created takes the names of its keys too, and one of those may be taken. */
export function refusalOf({ text }: Statement, error: unknown): unknown {
  const told = refusal(error);
  if (codeOf(error) !== NAME_TAKEN || !isSvcError(told) || told.why === undefined) return told;
  const [, created] = /^CREATE (?:\w+ )?TABLE (?:IF NOT EXISTS )?(?:pg_temp\.)?"((?:[^"]|"")*)"/.exec(text) ?? [];
  const [, taken] = /"(.*)"/s.exec((error as Error).message) ?? [];
  if (created === undefined || taken === undefined || created.replaceAll('""', '"') === taken) return told;
  return new SvcError('name_invalid', `The name "${taken}" of a key of the new table is taken.`, {
    why: told.why,
    next: ['Drop or rename what has it, or call the table or the field otherwise.'],
    details: told.details,
    cause: told.cause,
  });
}

/** An error of a session that was open: a server that cannot be reached any more may have done what it was sent last. */
export function ofOpen(error: unknown): unknown {
  const code = codeOf(error);
  if (code === undefined || meaningOf(code) !== UNREACHABLE) return error;
  return new SvcError(LOST.code, LOST.message, {
    why: `${code}: ${(error as Error).message}`,
    next: LOST.next ?? [],
    details: { engineCode: code },
    cause: error,
  });
}

/** An error before the server let us in: nothing was sent that could have been done. */
export function ofOpening(error: unknown): unknown {
  const known = refusal(error);
  const code = codeOf(error);
  // What the server says itself has five characters.
  const isTls = (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) && isTlsError(error);
  if (!isTls && !(isSvcError(known) && known.code === LOST.code)) return known;
  const words = (error as Error).message;
  return new SvcError(UNREACHABLE.code, UNREACHABLE.message, {
    why: code === undefined ? words : `${code}: ${words}`,
    next: isTls ? TLS : (UNREACHABLE.next ?? []),
    details: code === undefined ? {} : { engineCode: code },
    cause: error,
  });
}

/** Which table, columns and constraint: the engine's own detail shows what stands in the row. */
function whereOf({ code, detail, table, column, constraint }: EngineError): string {
  const key = code === '23503' || code === '23505' ? /^[^()]*\((.+?)\)=\(/s.exec(detail ?? '')?.[1] : undefined;
  const named = { table, column, columns: key, constraint };
  const parts = Object.entries(named).flatMap(([kind, name]) => (name === undefined ? [] : [`${kind} ${name}`]));
  return parts.length === 0 ? '' : `(${parts.join(', ')})`;
}

/** A refusal is printed with its cause. */
function withoutRow(error: EngineError): Error {
  const { message, code, table, column, constraint, stack } = error;
  return Object.assign(new Error(message), { code, table, column, constraint, stack });
}

function meaningOf(code: string): Meaning {
  return MEANINGS[code] ?? (/^[0-9A-Z]{5}$/.test(code) ? CLASSES[code.slice(0, 2)] : undefined) ?? FAILED;
}

/** The same refusal from a place before anything could be changed. */
export function unchanged(error: unknown): unknown {
  return isSvcError(error) && error.state === undefined ? error.with({ state: 'Nothing was changed.' }) : error;
}
