import { type ErrorCode, isSvcError, SvcError } from '../../../core/errors.ts';
import { isTlsError } from '../../sql/tls-error.ts';
import { TAKE_OVER } from '../../take-over.ts';

/** What both drivers put on an error; the message of MariaDB's holds the statement, `sqlMessage` does not. */
interface EngineError extends Error {
  readonly errno?: number;
  readonly code?: string;
  readonly sqlState?: string | null;
  readonly sqlMessage?: string | null;
  readonly fatal?: boolean;
}

/** The engine's number. */
export function numberOf(error: unknown): number | undefined {
  const errno = error instanceof Error ? (error as EngineError).errno : undefined;
  return typeof errno === 'number' && errno > 0 ? errno : undefined;
}

const PASSING: ReadonlySet<number | undefined> = new Set([1020, 1205, 1213]);

/** Another session was in the way and nothing was done: the same text may pass in a moment. */
export function isPassing(error: unknown): boolean {
  return PASSING.has(numberOf(error));
}

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next?: readonly string[];
}

const LOST: Meaning = {
  code: 'connection_lost',
  message: 'The connection to the database server was lost.',
  next: ['Run the command again: it finds out what was committed.'],
};
const UNREACHABLE: Meaning = {
  code: 'connection_failed',
  message: 'The database server cannot be reached.',
  next: ['Check that the server runs, and the host and port of the URL.'],
};
const FULL: Meaning = {
  code: 'connection_failed',
  message: 'The database server takes no more connections.',
  next: ['Close others, or raise max_connections or the limit of the user.'],
};
const REFUSED: Meaning = {
  code: 'authentication_failed',
  message: 'The database server refused the credentials.',
  next: ['Check the user and the password of the URL, and from which hosts the user may come.'],
};
const FORBIDDEN: Meaning = {
  code: 'permission_denied',
  message: 'The database user may not do this.',
  next: [
    'Use a user that may, or grant it: to migrate ALTER, CREATE, CREATE TEMPORARY TABLES, DROP, INDEX, REFERENCES, SELECT, INSERT, UPDATE and DELETE on the database, to look SELECT, REFERENCES and CREATE TEMPORARY TABLES.',
  ],
};
const READ_ONLY: Meaning = {
  code: 'permission_denied',
  message: 'The database server takes no writes.',
  next: ['Use the primary server: this one runs read-only.'],
};
const REFERENCED: Meaning = {
  code: 'collection_referenced',
  message: 'Foreign keys of other tables point at it.',
  next: ['Drop them first, or delete the rows that point here.'],
};
const LOCKED: Meaning = {
  code: 'migration_failed',
  message: 'Another session keeps a lock on the table or its rows.',
  next: ['Look who: SHOW FULL PROCESSLIST', 'Run the command again when it is gone.'],
};
const OVERTAKEN: Meaning = {
  code: 'migration_failed',
  message: 'Another session has changed a row since it was read.',
  next: ['Run the command again.'],
};
const UNKNOWN_TABLE: Meaning = { code: 'collection_unknown', message: 'The table does not exist.' };
const FAILED: Meaning = { code: 'migration_failed', message: 'The database server refused a statement.' };

const violation = (...next: string[]): Meaning => ({
  code: 'data_violates',
  message: 'Rows in the table do not allow the change.',
  next,
});
const VALUE = violation('Correct the values in a migration before it.');
const NULLS = violation(
  'Give the field a default; or add it without required, fill the rows in a migration, and require it in the next.',
);
const CHECK = violation('Correct or delete the rows that break the check.');
const constraintExists: Meaning = { code: 'constraint_exists', message: 'The constraint already exists.' };

/** By number: the words depend on the server's language. */
const MEANINGS: Readonly<Record<number, Meaning>> = {
  1040: FULL,
  1203: FULL,
  1226: FULL,
  1045: REFUSED,
  1251: REFUSED,
  1698: REFUSED,
  45044: REFUSED,
  1044: FORBIDDEN,
  1142: FORBIDDEN,
  1143: FORBIDDEN,
  1227: FORBIDDEN,
  1370: FORBIDDEN,
  1419: FORBIDDEN,
  1290: READ_ONLY,
  1792: READ_ONLY,
  1836: READ_ONLY,
  1049: {
    code: 'database_missing',
    message: 'The database does not exist on the server.',
    next: ['Create it, or correct the URL.'],
  },
  1050: {
    code: 'collection_exists',
    message: 'The table already exists.',
    next: TAKE_OVER,
  },
  1051: UNKNOWN_TABLE,
  1146: UNKNOWN_TABLE,
  1054: { code: 'field_unknown', message: 'The field does not exist.' },
  1060: { code: 'field_exists', message: 'The field already exists.' },
  1061: { code: 'index_exists', message: 'The index already exists.' },
  1826: constraintExists,
  3822: constraintExists,
  1217: REFERENCED,
  1451: REFERENCED,
  3730: REFERENCED,
  1020: OVERTAKEN,
  1205: LOCKED,
  1213: LOCKED,
  1048: NULLS,
  1138: NULLS,
  1364: NULLS,
  1062: violation('Remove the duplicates, or leave uniqueness out.'),
  1216: violation('Correct or delete the rows that point at nothing.'),
  1452: violation('Correct or delete the rows that point at nothing.'),
  3819: CHECK,
  4025: CHECK,
  1264: VALUE,
  1265: VALUE,
  1292: VALUE,
  1366: VALUE,
  1406: VALUE,
  1411: VALUE,
  3140: VALUE,
  1053: LOST,
  1152: LOST,
  1158: LOST,
  1159: LOST,
  1160: LOST,
  1161: LOST,
  1184: LOST,
  1927: LOST,
  4031: LOST,
  45009: LOST,
  45012: UNREACHABLE,
  45013: LOST,
};

/** Of Node and of the drivers, where the server gave no number. */
const CODES: Readonly<Record<string, Meaning>> = {
  ECONNREFUSED: UNREACHABLE,
  ENOTFOUND: UNREACHABLE,
  EAI_AGAIN: UNREACHABLE,
  ETIMEDOUT: UNREACHABLE,
  EHOSTUNREACH: UNREACHABLE,
  ENETUNREACH: UNREACHABLE,
  ENOENT: UNREACHABLE,
  ECONNRESET: LOST,
  EPIPE: LOST,
  PROTOCOL_CONNECTION_LOST: LOST,
};

/** Words of these show a value that stands in a row; the end, where it is matched, says where without it. */
const SHOWS_VALUE: Readonly<Record<number, RegExp>> = {
  1062: /for key .*$/s,
  1292: /for column .*$/s,
  1366: /for column .*$/s,
  1411: /for function .*$/s,
  3140: /in value for column .*$/s,
};

/** The engine's error as a refusal, its number and words in `why`. What is none of the engine's stays as it is. */
export function refusal(error: unknown): unknown {
  const meaning = meaningOf(error);
  return meaning ? told(error as EngineError, meaning) : error;
}

/** An error of a session that was open: a server that cannot be reached any more may have done what it was sent last. */
export function ofOpen(error: unknown): unknown {
  return meaningOf(error) === UNREACHABLE ? told(error as EngineError, LOST) : error;
}

/** An error before the server let us in: nothing was sent that could have been done. */
export function ofOpening(error: unknown): unknown {
  const meaning = meaningOf(error);
  if (meaning !== LOST) return refusal(error);
  const next = isTlsError(error)
    ? ['Make its certificate known: NODE_EXTRA_CA_CERTS=<file>', 'Or encrypt without looking at it: ?tls=encrypt']
    : UNREACHABLE.next;
  return told(error as EngineError, { ...UNREACHABLE, ...(next && { next }) });
}

function meaningOf(error: unknown): Meaning | undefined {
  if (!(error instanceof Error) || isSvcError(error)) return undefined;
  const { code, fatal, sqlState } = error as EngineError;
  const number = numberOf(error);
  return (
    (number === undefined ? undefined : MEANINGS[number]) ??
    (code === undefined ? undefined : CODES[code]) ??
    (fatal ? LOST : undefined) ??
    (number !== undefined && typeof sqlState === 'string' ? FAILED : undefined)
  );
}

function told(error: EngineError, meaning: Meaning): SvcError {
  const { code, sqlState } = error;
  const number = numberOf(error);
  const words = wordsOf(error, number);
  return new SvcError(meaning.code, meaning.message, {
    why: number === undefined ? words : `${number}: ${words}`,
    next: meaning.next ?? [],
    details: number === undefined ? {} : { engineCode: number },
    // The driver's own holds the whole statement and its values.
    cause: Object.assign(new Error(words), { errno: number, code, sqlState }),
  });
}

function wordsOf(error: EngineError, number: number | undefined): string {
  // A syntax error quotes what follows, which in a packet is ours.
  const words = (error.sqlMessage ?? error.message).replace(/\s*\n;SET @svc_.*?(?=' at line|$)/s, '');
  const shows = number === undefined ? undefined : SHOWS_VALUE[number];
  if (!shows) return words;
  return `a value ${shows.exec(words)?.[0] ?? 'of a row'} (${error.code})`;
}

/** The same refusal from a place before anything could be changed. */
export function unchanged(error: unknown): unknown {
  return isSvcError(error) && error.state === undefined ? error.with({ state: 'Nothing was changed.' }) : error;
}

export function pooled(why: string): SvcError {
  return new SvcError('pooler_unsupported', 'A proxy hands the statements of one connection to several sessions.', {
    why: `${why} The migration lock would not hold.`,
    next: ["Use the server's own address in the URL, or switch connection sharing off in the proxy."],
  });
}
