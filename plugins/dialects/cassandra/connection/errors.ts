import { describeError, isSvcError, SvcError } from '../../../../core/errors.ts';
import { type ErrorMapping, mappedError, networkMappings, TABLE_EXISTS_REMEDIES } from '../../shared/errors.ts';

interface EngineError extends Error {
  /** A number from the server, a string from Node. */
  readonly code?: number | string;
  readonly innerErrors?: Readonly<Record<string, unknown>>;
}

const UNREACHABLE: ErrorMapping = {
  code: 'connection_failed',
  message: 'The Cassandra cluster cannot be reached.',
  next: ['Check that its nodes are running, and the hosts, ports and data center of the URL.'],
};
const TOO_FEW_NODES: ErrorMapping = {
  code: 'connection_failed',
  message: 'Not enough nodes of the Cassandra cluster respond.',
  next: ['Check which nodes are down: nodetool status'],
};
const BAD_CREDENTIALS: ErrorMapping = {
  code: 'authentication_failed',
  message: 'Cassandra rejected the credentials.',
  next: ['Check the user and the password of the URL.'],
};
const OUTCOME_UNKNOWN: ErrorMapping = {
  code: 'connection_lost',
  message: 'Cassandra did not confirm a statement.',
  next: ['Run the command again: it checks what took effect.'],
};
const STATEMENT_FAILED: ErrorMapping = { code: 'migration_failed', message: 'Cassandra rejected a statement.' };

const UNAUTHORIZED = 0x2100;
const INVALID = 0x2200;
const ALREADY_EXISTS = 0x2400;

const ERROR_MAPPINGS: Readonly<Record<number | string, ErrorMapping>> = {
  ...networkMappings(UNREACHABLE, OUTCOME_UNKNOWN),
  256: BAD_CREDENTIALS, // 0x0100
  4096: TOO_FEW_NODES, // 0x1000 unavailable
  4097: TOO_FEW_NODES, // 0x1001 overloaded
  4098: UNREACHABLE, // 0x1002 starting
  4608: TOO_FEW_NODES, // 0x1200 read time-out
  4864: TOO_FEW_NODES, // 0x1300 read failure
  [UNAUTHORIZED]: {
    code: 'permission_denied',
    message: 'The database user is not permitted to do this.',
    next: ['Grant CREATE, ALTER, DROP, SELECT and MODIFY on the keyspace to migrate, or SELECT to read.'],
  },
  [ALREADY_EXISTS]: {
    code: 'collection_exists',
    message: 'The table or index already exists.',
    next: TABLE_EXISTS_REMEDIES,
  },
};

/** What an invalid statement names, by the server's message: it has one error number for all. */
const INVALID_MAPPINGS: readonly (readonly [RegExp, ErrorMapping])[] = [
  [
    /^Column .* already exists|conflicts with an existing column/,
    { code: 'field_exists', message: 'The field already exists.' },
  ],
  [/^Column .* was not found|^Undefined column/, { code: 'field_unknown', message: 'The field does not exist.' }],
  [/^Index .* already exists/, { code: 'index_exists', message: 'The index already exists.' }],
  [/^Index .* doesn't exist/, { code: 'index_unknown', message: 'The index does not exist.' }],
  [/^Table .* doesn't exist|^unconfigured table/, { code: 'collection_unknown', message: 'The table does not exist.' }],
];

/** Errors of statements that certainly had no effect. */
const NOTHING_DONE_CODES: ReadonlySet<number | string | undefined> = new Set([
  0x0100,
  0x1000,
  0x1001,
  0x1002,
  0x2000,
  UNAUTHORIZED,
  INVALID,
  0x2300,
  ALREADY_EXISTS,
  'ECONNREFUSED',
  'ENOTFOUND',
]);

/** The error of a host inside the driver's NoHostAvailableError. */
export function rootCause(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const inner = Object.values((error as EngineError).innerErrors ?? {});
  return inner.find((one) => typeof errorCode(one) === 'number') ?? inner[0] ?? error;
}

/** The server's error number, or Node's error code. */
export function errorCode(error: unknown): number | string | undefined {
  return error instanceof Error ? (error as EngineError).code : undefined;
}

/** Whether a statement that failed with this error may have taken effect, or still may. */
export function isOutcomeUnknown(error: unknown): boolean {
  const cause = isSvcError(error) ? error.cause : error;
  return cause instanceof Error && isDriverError(cause) && !NOTHING_DONE_CODES.has(errorCode(rootCause(cause)));
}

/** Whether the server certainly did not execute a statement that failed with this error. */
export function isRejected(error: unknown): boolean {
  return error instanceof Error && isDriverError(error) && !isOutcomeUnknown(error);
}

/** A timeout of a read, a write or a lightweight transaction, or a read failure, as on a node without a new table. */
export function isTimeout(error: unknown): boolean {
  const code = errorCode(rootCause(isSvcError(error) ? error.cause : error));
  return code === 0x1100 || code === 0x1200 || code === 0x1300 || code === 0x1700;
}

/** The cluster has too much to do, or a node is starting. The statement had no effect. */
export function isOverloaded(error: unknown): boolean {
  const code = errorCode(rootCause(isSvcError(error) ? error.cause : error));
  return code === 0x1000 || code === 0x1001 || code === 0x1002;
}

/** Maps an error of the driver to an SvcError with its code and message in `why`. Any other error is returned unchanged. */
export function toSvcError(error: unknown): unknown {
  if (!(error instanceof Error) || isSvcError(error)) return error;
  const cause = rootCause(error);
  const code = errorCode(cause);
  const { name, message } = cause instanceof Error ? cause : error;
  const details = code === undefined ? {} : { engineCode: typeof code === 'number' ? hex(code) : code };
  const mapped = (mapping: ErrorMapping, why = message) => mappedError(mapping, { why, details, cause: error });
  if (name === 'AuthenticationError') return mapped(BAD_CREDENTIALS);
  if (name === 'ArgumentError' || name === 'NoHostAvailableError') return mapped(UNREACHABLE);
  if (!isDriverError(error)) return error;
  const [, invalid] = (code === INVALID ? INVALID_MAPPINGS : []).find(([text]) => text.test(message)) ?? [];
  const mapping =
    invalid ??
    (code === undefined ? undefined : ERROR_MAPPINGS[code]) ??
    (isOutcomeUnknown(error) ? OUTCOME_UNKNOWN : STATEMENT_FAILED);
  return mapped(mapping, typeof code === 'number' ? `0x${hex(code)}: ${message}` : message);
}

const hex = (code: number): string => code.toString(16).padStart(4, '0');

/** The driver's error classes and network errors. Anything else, such as a TypeError, is a bug. */
function isDriverError(error: EngineError): boolean {
  return (
    /^(ResponseError|OperationTimedOutError|DriverError|DriverInternalError|BusyConnectionError|NoHostAvailableError)$/.test(
      error.name,
    ) || typeof errorCode(rootCause(error)) === 'string'
  );
}

/** The error of a statement that may have taken effect: the next run checks. */
export function outcomeUnknownError(error: unknown): unknown {
  const svcError = toSvcError(error);
  if (!isSvcError(svcError)) return svcError;
  const unknown = { ...OUTCOME_UNKNOWN, message: 'It is not known whether a statement took effect.' };
  return mappedError(svcError.next.length > 0 ? { ...unknown, next: svcError.next } : unknown, {
    why: describeError(svcError),
    details: svcError.details,
    cause: error,
  });
}

export function tableExistsError(table: string): SvcError {
  return new SvcError('collection_exists', `The table "${table}" already exists.`, { next: TABLE_EXISTS_REMEDIES });
}
