import { isSvcError, SvcError } from '../../../../core/errors.ts';
import {
  type ErrorMapping,
  isTlsError,
  mappedError,
  networkMappings,
  TABLE_EXISTS_REMEDIES,
} from '../../shared/errors.ts';

/** The properties of both drivers' errors. MariaDB's `message` contains the statement; `sqlMessage` does not. */
interface EngineError extends Error {
  readonly errno?: number;
  readonly code?: string;
  readonly sqlState?: string | null;
  readonly sqlMessage?: string | null;
  readonly fatal?: boolean;
}

/** The server's error number. */
export function errorNumber(error: unknown): number | undefined {
  const errno = error instanceof Error ? (error as EngineError).errno : undefined;
  return typeof errno === 'number' && errno > 0 ? errno : undefined;
}

const TRANSIENT: ReadonlySet<number | undefined> = new Set([1020, 1205, 1206, 1213]);

/** A conflict with another session, and nothing was changed: a retry may succeed. */
export function isTransient(error: unknown): boolean {
  return TRANSIENT.has(errorNumber(error));
}

const LOST: ErrorMapping = {
  code: 'connection_lost',
  message: 'The connection to the database server was lost.',
  next: ['Run the command again: it checks what took effect.'],
};
const UNREACHABLE: ErrorMapping = {
  code: 'connection_failed',
  message: 'The database server cannot be reached.',
  next: ['Check that the server is running, and the host and port of the URL.'],
};
const FULL: ErrorMapping = {
  code: 'connection_failed',
  message: 'The database server accepts no more connections.',
  next: ['Close other connections, or raise max_connections or the limit of the user.'],
};
const ACCESS_DENIED: ErrorMapping = {
  code: 'authentication_failed',
  message: 'The database server rejected the credentials.',
  next: ['Check the user and the password of the URL, and the hosts from which the user may connect.'],
};
const FORBIDDEN: ErrorMapping = {
  code: 'permission_denied',
  message: 'The database user is not permitted to do this.',
  next: [
    'Use another user, or grant the privileges on the database: ALTER, CREATE, CREATE TEMPORARY TABLES, DROP, INDEX, REFERENCES, SELECT, INSERT, UPDATE and DELETE to migrate, SELECT, REFERENCES and CREATE TEMPORARY TABLES to read.',
  ],
};
const READ_ONLY: ErrorMapping = {
  code: 'permission_denied',
  message: 'The database server is read-only.',
  next: ['Use the primary server.'],
};
const REFERENCED: ErrorMapping = {
  code: 'collection_referenced',
  message: 'Foreign keys of other tables reference the table.',
  next: ['Drop them first, or delete the rows that reference it.'],
};
const FIELD_IN_FOREIGN_KEY: ErrorMapping = {
  code: 'field_in_use',
  message: 'A foreign key needs the field.',
  next: ['Drop the foreign key that the message names first.'],
};
const LOCKED: ErrorMapping = {
  code: 'table_locked',
  message: 'Another session holds a lock on the table or its rows.',
  next: ['Find the session: SHOW FULL PROCESSLIST', 'Run the command again when the session has ended.'],
};
const LOCKS_EXHAUSTED: ErrorMapping = {
  code: 'locks_exhausted',
  message: 'The database server has no room for more locks.',
  next: ['Run the command again when the server is less busy, or raise innodb_buffer_pool_size.'],
};
const CHANGED_CONCURRENTLY: ErrorMapping = {
  code: 'table_locked',
  message: 'Another session has changed a row since it was read.',
  next: ['Run the command again.'],
};
const UNKNOWN_TABLE: ErrorMapping = { code: 'collection_unknown', message: 'The table does not exist.' };
const FAILED: ErrorMapping = { code: 'migration_failed', message: 'The database server rejected a statement.' };

const violation = (...next: string[]): ErrorMapping => ({
  code: 'data_violates',
  message: 'Rows in the table do not allow the change.',
  next,
});
const VALUE = violation('Correct the values in an earlier migration.');
const NULLS = violation(
  'Give the field a default; or add it without required, fill the rows in a migration, and make it required in the next.',
);
const CHECK = violation('Correct or delete the rows that violate the check.');
const CONSTRAINT_EXISTS: ErrorMapping = { code: 'constraint_exists', message: 'The constraint already exists.' };

/** By number, because the messages depend on the server's language. */
const MAPPINGS: Readonly<Record<number, ErrorMapping>> = {
  1040: FULL,
  1203: FULL,
  1226: FULL,
  1045: ACCESS_DENIED,
  1251: ACCESS_DENIED,
  1698: ACCESS_DENIED,
  45044: ACCESS_DENIED,
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
    next: TABLE_EXISTS_REMEDIES,
  },
  1051: UNKNOWN_TABLE,
  1146: UNKNOWN_TABLE,
  1054: { code: 'field_unknown', message: 'The field does not exist.' },
  1060: { code: 'field_exists', message: 'The field already exists.' },
  1061: { code: 'index_exists', message: 'The index already exists.' },
  1826: CONSTRAINT_EXISTS,
  3822: CONSTRAINT_EXISTS,
  1553: {
    code: 'key_in_use',
    message: 'A foreign key needs the key.',
    next: ['Drop the foreign key that the message names first.'],
  },
  1828: FIELD_IN_FOREIGN_KEY,
  1829: FIELD_IN_FOREIGN_KEY,
  1217: REFERENCED,
  1451: REFERENCED,
  3730: REFERENCED,
  1020: CHANGED_CONCURRENTLY,
  1205: LOCKED,
  1206: LOCKS_EXHAUSTED,
  1213: LOCKED,
  1048: NULLS,
  1138: NULLS,
  1364: NULLS,
  1062: violation('Remove the duplicates, or make the change without uniqueness.'),
  1216: violation('Correct or delete the rows whose reference does not exist.'),
  1452: violation('Correct or delete the rows whose reference does not exist.'),
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

/** Codes of Node and of the drivers, for errors without a number of the server. */
const CODES: Readonly<Record<string, ErrorMapping>> = {
  ...networkMappings(UNREACHABLE, LOST),
  ENOENT: UNREACHABLE,
  PROTOCOL_CONNECTION_LOST: LOST,
};

/** Messages that contain a value of a row. The pattern matches the rest, which names the place. */
const MESSAGES_WITH_VALUES: Readonly<Record<number, RegExp>> = {
  1062: /for key .*$/s,
  1292: /for column .*$/s,
  1366: /for column .*$/s,
  1411: /for function .*$/s,
  3140: /in value for column .*$/s,
};

/** The server's or driver's error as an `SvcError`, with its number and message in `why`. Returns any other error unchanged. */
export function toSvcError(error: unknown): unknown {
  const mapping = mappingOf(error);
  return mapping ? engineError(error as EngineError, mapping) : error;
}

/** An error in an open session. If the server became unreachable, it may have run the last statement. */
export function toSessionError(error: unknown): unknown {
  return mappingOf(error) === UNREACHABLE ? engineError(error as EngineError, LOST) : error;
}

/** An error before the session began: nothing was run. */
export function toConnectError(error: unknown): unknown {
  const mapping = mappingOf(error);
  if (mapping !== LOST) return toSvcError(error);
  const next = isTlsError(error)
    ? ['Trust its certificate: NODE_EXTRA_CA_CERTS=<file>', 'Or encrypt without verification: ?tls=encrypt']
    : UNREACHABLE.next;
  return engineError(error as EngineError, { ...UNREACHABLE, ...(next && { next }) });
}

function mappingOf(error: unknown): ErrorMapping | undefined {
  if (!(error instanceof Error) || isSvcError(error)) return undefined;
  const { code, fatal, sqlState } = error as EngineError;
  const number = errorNumber(error);
  return (
    (number === undefined ? undefined : MAPPINGS[number]) ??
    (code === undefined ? undefined : CODES[code]) ??
    (fatal ? LOST : undefined) ??
    (number !== undefined && typeof sqlState === 'string' ? FAILED : undefined)
  );
}

function engineError(error: EngineError, mapping: ErrorMapping): SvcError {
  const { code, sqlState } = error;
  const number = errorNumber(error);
  const message = errorMessage(error, number);
  return mappedError(mapping, {
    why: number === undefined ? message : `${number}: ${message}`,
    details: number === undefined ? {} : { engineCode: number },
    // The driver's error contains the whole statement with its values.
    cause: Object.assign(new Error(message), { errno: number, code, sqlState }),
  });
}

function errorMessage(error: EngineError, number: number | undefined): string {
  // A syntax error quotes the text that follows: in a packet that is svc's own SQL, each statement after a line break.
  const message = (error.sqlMessage ?? error.message).replace(/\s*\n;.*?(?=' at line|$)/s, '');
  const pattern = number === undefined ? undefined : MESSAGES_WITH_VALUES[number];
  if (!pattern) return message;
  return `a value ${pattern.exec(message)?.[0] ?? 'of a row'} (${error.code})`;
}

export function poolerError(why: string): SvcError {
  return new SvcError('pooler_unsupported', 'A proxy runs the statements of one connection in several sessions.', {
    why: `${why} The migration lock would not work.`,
    next: ["Use the server's own address in the URL, or disable connection sharing in the proxy."],
  });
}
