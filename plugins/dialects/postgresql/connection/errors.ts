import type { Statement } from '../../../../core/dialect.ts';
import { isSvcError, SvcError } from '../../../../core/errors.ts';
import {
  type ErrorMapping,
  isTlsError,
  mappedError,
  networkMappings,
  TABLE_EXISTS_REMEDIES,
} from '../../shared/errors.ts';

interface EngineError extends Error {
  readonly code?: string;
  readonly detail?: string;
  readonly hint?: string;
  readonly table?: string;
  readonly column?: string;
  readonly constraint?: string;
  /** The call stack inside the server; absent if the statement itself is rejected. */
  readonly where?: string;
}

/** The SQLSTATE of a server's error, or the code of a Node error. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error ? (error as EngineError).code : undefined;
}

/** The SQLSTATE of a guard for a column with a native enum type. */
export const NATIVE_ENUM_ERROR = 'SVC01';
/** The SQLSTATE of a guard for dropping a field whose index or constraint also uses other fields. */
export const FIELD_SHARED_ERROR = 'SVC02';
/** The SQLSTATE of a guard for values that a change of type would alter. */
export const VALUES_ALTERED_ERROR = 'SVC03';

export const LOCK_NOT_AVAILABLE = '55P03';
export const INSUFFICIENT_PRIVILEGE = '42501';
const INVALID_SCHEMA_NAME = '3F000';
export const DUPLICATE_TABLE = '42P07';
/** By a timeout, or by a person. */
export const QUERY_CANCELED = '57014';
const TRANSIENT_CODES: ReadonlySet<string | undefined> = new Set([LOCK_NOT_AVAILABLE, '40P01', '40001']);

/** A lock timeout, a deadlock or a serialization failure: nothing was changed, and the same text may succeed later. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT_CODES.has(codeOf(error));
}

/** A syntax error, or a name that does not exist. */
export function isInvalidStatement(error: unknown): boolean {
  const code = codeOf(error);
  return (code?.startsWith('42') === true && code !== INSUFFICIENT_PRIVILEGE) || code === INVALID_SCHEMA_NAME;
}

/**
 * Whether a statement outside a transaction was rejected for its own text, before it began. An error with a call stack came from
 * a function that it called, which may have committed. Several statements in one text are one transaction, which rejects
 * those that commit.
 */
export function isRejectedBeforeExecution(error: unknown): boolean {
  const code = codeOf(error);
  const isAboutText = code?.startsWith('42') === true || code === '25001' || code === '0A000';
  return isAboutText && (error as EngineError).where === undefined;
}

const UNREACHABLE: ErrorMapping = {
  code: 'connection_failed',
  message: 'The PostgreSQL server cannot be reached.',
  next: ['Check that the server is running, and the host and port of the URL.'],
};
const TOO_MANY_CONNECTIONS: ErrorMapping = {
  code: 'connection_failed',
  message: 'The PostgreSQL server accepts no more connections.',
  next: ['Close other connections, or raise the limit: max_connections, or CONNECTION LIMIT of the role or database.'],
};
const BAD_CREDENTIALS: ErrorMapping = {
  code: 'authentication_failed',
  message: 'PostgreSQL rejected the credentials.',
  next: ['Check the user and the password of the URL.'],
};
const LOST: ErrorMapping = {
  code: 'connection_lost',
  message: 'The connection to PostgreSQL was lost.',
  next: ['Run the command again: it checks what took effect.'],
};
/** Parameters of the URL that configure TLS. */
const TLS_ADVICE: readonly string[] = [
  'For a certificate that Node does not trust: sslrootcert=<file>, or sslmode=no-verify to encrypt without verification.',
  'For a server without TLS: sslmode=disable',
];
export const OUT_OF_MEMORY = '53200';
const OUT_OF_LOCKS: ErrorMapping = {
  code: 'locks_exhausted',
  message: 'The PostgreSQL server has no room for more locks.',
  next: [
    'Split the migration into several, or raise max_locks_per_transaction and restart the server.',
    'If other sessions hold many locks, run the command again later: SELECT pid, count(*) FROM pg_locks GROUP BY 1',
  ],
};
const POOLER: ErrorMapping = {
  code: 'pooler_unsupported',
  message: 'The URL points to a connection pooler, which would break the migration lock.',
  next: ["Use the PostgreSQL server's own port in the URL."],
};
export const poolerError = (why: string): SvcError => mappedError(POOLER, { why });

const LOCKED: ErrorMapping = {
  code: 'table_locked',
  message: 'Another session holds a lock on the table.',
  next: ['Find the session: SELECT * FROM pg_stat_activity', 'Run the command again when the session has ended.'],
};

function violationMapping(next: string): ErrorMapping {
  return { code: 'data_violates', message: 'Rows in the table do not allow the change.', next: [next] };
}

const MAPPING_BY_CODE: Readonly<Record<string, ErrorMapping>> = {
  ...networkMappings(UNREACHABLE, LOST),
  ENOENT: UNREACHABLE,
  '53300': TOO_MANY_CONNECTIONS,
  '53100': { code: 'migration_failed', message: 'The PostgreSQL server is out of disk space.' },
  [OUT_OF_MEMORY]: { code: 'migration_failed', message: 'The PostgreSQL server is out of memory.' },
  '57P03': UNREACHABLE,
  '57P01': LOST,
  '57P02': LOST,
  '57P05': LOST,
  '25P03': LOST,
  '08P01': POOLER,
  '3D000': {
    code: 'database_missing',
    message: 'The database does not exist on the server.',
    next: ['Create it, or correct the URL.'],
  },
  [INSUFFICIENT_PRIVILEGE]: {
    code: 'permission_denied',
    message: 'The database user is not permitted to do this.',
    next: [
      'Use another user, or grant the privileges: CREATE and USAGE on the schema and ownership of the tables to migrate, SELECT on the tables to read.',
    ],
  },
  '25006': {
    code: 'permission_denied',
    message: 'The database session is read-only.',
    next: ['Connect to the primary server, or use a user and a database without default_transaction_read_only.'],
  },
  [DUPLICATE_TABLE]: {
    code: 'collection_exists',
    message: 'The table or index already exists.',
    next: TABLE_EXISTS_REMEDIES,
  },
  [INVALID_SCHEMA_NAME]: {
    code: 'config_invalid',
    message: 'The schema does not exist.',
    next: [
      'Create it in an earlier migration: svc/database/objects/<database>/schema/<name>.sql with CREATE SCHEMA <name>',
    ],
  },
  '42710': { code: 'constraint_exists', message: 'The constraint already exists.' },
  '42701': { code: 'field_exists', message: 'The field already exists.' },
  '42P01': { code: 'collection_unknown', message: 'The table does not exist.' },
  '2BP01': {
    code: 'collection_referenced',
    message: 'Another object in the database depends on it.',
    next: ['Drop the dependent object first: with cascade, svc only drops foreign keys of the same schema.'],
  },
  [LOCK_NOT_AVAILABLE]: LOCKED,
  '40P01': LOCKED,
  '40001': LOCKED,
  [QUERY_CANCELED]: {
    code: 'statement_canceled',
    message: 'The server canceled a statement.',
    next: ['Raise statementTimeoutMs in the options of the database, or run it again when the server is less busy.'],
  },
  '23502': violationMapping(
    'Give the field a default; or add it without required, fill the rows in a migration, and make it required in the next.',
  ),
  '23503': violationMapping('Correct or delete the rows whose reference does not exist.'),
  '23505': violationMapping('Remove the duplicates, or make the change without uniqueness.'),
  '23514': violationMapping('Correct or delete the rows that violate the check.'),
  [NATIVE_ENUM_ERROR]: {
    code: 'not_supported',
    message: 'A field has a native enum type, which svc cannot change.',
    next: [
      'Run the statement above in a raw operation before this one: it converts the field to text with a check.',
      'If you have a check constraint with the name that it drops, add it again with another name.',
    ],
  },
  [FIELD_SHARED_ERROR]: {
    code: 'field_in_use',
    message: 'The field cannot be dropped: other objects use it.',
    next: [
      'Drop those created by migrations with dropIndex or dropConstraint before this operation.',
      'Drop the others with the statement above: in a raw operation, or by hand.',
    ],
  },
  [VALUES_ALTERED_ERROR]: {
    code: 'data_violates',
    message: 'The change would alter values.',
    next: ['Run the statement above in a raw operation before this one, or correct the rows by hand.'],
  },
  '42883': { code: 'migration_failed', message: 'A function or an operator does not exist on the server.' },
};

const MAPPING_BY_CLASS: Readonly<Record<string, ErrorMapping>> = {
  '08': LOST,
  '28': BAD_CREDENTIALS,
  '53': { code: 'migration_failed', message: 'The PostgreSQL server lacks a resource.' },
  '23': { code: 'data_violates', message: 'Rows in the table do not allow the change.' },
  '22': { code: 'data_violates', message: 'A value does not allow the change.' },
};

const INDEX_EXISTS: ErrorMapping = {
  code: 'index_exists',
  message: 'A table or an index with the name of the index already exists.',
  next: ['Use another name, or drop the existing one.'],
};
const FAILED: ErrorMapping = { code: 'migration_failed', message: 'PostgreSQL rejected a statement.' };

/** A PostgreSQL or connection error as an `SvcError`, with its code and message in `why`; anything else unchanged. */
export function toSvcError(error: unknown): unknown {
  if (!(error instanceof Error) || isSvcError(error)) return error;
  const { code, hint } = error as EngineError;
  const showsRow = code?.startsWith('23') === true;
  const detail = showsRow ? violatedConstraint(error) : (error as EngineError).detail;
  if (code === undefined && error.message.startsWith('SASL')) {
    return mappedError(BAD_CREDENTIALS, { why: error.message, cause: error });
  }
  if (code === undefined && !/connection|timeout|ended|closed/i.test(error.message)) return error;
  const mapping = isOutOfLocks(error)
    ? OUT_OF_LOCKS
    : code === undefined
      ? /timeout/i.test(error.message)
        ? UNREACHABLE
        : LOST
      : mappingOf(code);
  if (code !== undefined && mapping === FAILED && !/^[0-9A-Z]{5}$/.test(code)) return error;
  const why = [code === undefined ? error.message : `${code}: ${error.message}`, detail, hint]
    .filter(Boolean)
    .join(' ');
  const lacksUuid = code === '42883' && error.message.includes('gen_random_uuid');
  return mappedError(lacksUuid ? { ...mapping, next: ['CREATE EXTENSION pgcrypto'] } : mapping, {
    why: lacksUuid ? `${why} gen_random_uuid() is built in since PostgreSQL 13.` : why,
    details: code === undefined ? {} : { engineCode: code },
    cause: showsRow ? withoutRowValues(error) : error,
  });
}

/** The lock table is in shared memory. The hint names the setting in any language. */
const isOutOfLocks = ({ code, hint }: EngineError): boolean =>
  code === OUT_OF_MEMORY && hint?.includes('max_locks_per_transaction') === true;

/** The error of a statement. A taken name may be that of the index to create, or of a key of the new table. */
export function statementError({ text }: Statement, error: unknown): unknown {
  const svcError = toSvcError(error);
  if (codeOf(error) !== DUPLICATE_TABLE || !isSvcError(svcError) || svcError.why === undefined) return svcError;
  if (/^CREATE (?:UNIQUE )?INDEX /.test(text)) {
    const { why, details, cause } = svcError;
    return mappedError(INDEX_EXISTS, { why, details, cause });
  }
  const [, created] =
    /^CREATE (?:\w+ )?TABLE (?:IF NOT EXISTS )?(?:pg_temp\.|"(?:[^"]|"")*"\.)?"((?:[^"]|"")*)"/.exec(text) ?? [];
  const [, taken] = /"(.*)"/s.exec((error as Error).message) ?? [];
  if (created === undefined || taken === undefined || created.replaceAll('""', '"') === taken) return svcError;
  return new SvcError('name_invalid', `The name "${taken}" of a key of the new table is taken.`, {
    why: svcError.why,
    next: ['Drop or rename the object with that name, or choose another name for the table or the field.'],
    details: svcError.details,
    cause: svcError.cause,
  });
}

/** For an error of an open session: a server that became unreachable may have run the last statement. */
export function asLostIfUnreachable(error: unknown): unknown {
  const code = codeOf(error);
  if (code === undefined || mappingOf(code) !== UNREACHABLE) return error;
  const why = `${code}: ${(error as Error).message}`;
  return mappedError(LOST, { why, details: { engineCode: code }, cause: error });
}

/** For an error before the session was open: no statement was sent. */
export function toConnectError(error: unknown): unknown {
  const svcError = toSvcError(error);
  const code = codeOf(error);
  // A SQLSTATE has five characters.
  const isTls = (code === undefined || !/^[0-9A-Z]{5}$/.test(code)) && isTlsError(error);
  if (!isTls && !(isSvcError(svcError) && svcError.code === LOST.code)) return svcError;
  const { message } = error as Error;
  return mappedError(isTls ? { ...UNREACHABLE, next: TLS_ADVICE } : UNREACHABLE, {
    why: code === undefined ? message : `${code}: ${message}`,
    details: code === undefined ? {} : { engineCode: code },
    cause: error,
  });
}

/** The table, columns and constraint. The server's own detail would show values of the row. */
function violatedConstraint({ code, detail, table, column, constraint }: EngineError): string {
  const key = code === '23503' || code === '23505' ? /^[^()]*\((.+?)\)=\(/s.exec(detail ?? '')?.[1] : undefined;
  const names = { table, column, columns: key, constraint };
  const parts = Object.entries(names).flatMap(([kind, name]) => (name === undefined ? [] : [`${kind} ${name}`]));
  return parts.length === 0 ? '' : `(${parts.join(', ')})`;
}

/** An `SvcError` is printed with its cause, which must not show values of the row. */
function withoutRowValues(error: EngineError): Error {
  const { message, code, table, column, constraint, stack } = error;
  return Object.assign(new Error(message), { code, table, column, constraint, stack });
}

function mappingOf(code: string): ErrorMapping {
  return (
    MAPPING_BY_CODE[code] ?? (/^[0-9A-Z]{5}$/.test(code) ? MAPPING_BY_CLASS[code.slice(0, 2)] : undefined) ?? FAILED
  );
}
