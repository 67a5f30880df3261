import { isSvcError, SvcError } from '../../../../core/errors.ts';
import { convertingErrors, type ErrorMapping, mappedError, TABLE_EXISTS_REMEDIES } from '../../shared/errors.ts';

interface EngineError extends Error {
  readonly code?: number | string;
  readonly errorLabels?: readonly string[];
  /** The server's response; an error of the driver if it ended a bulk write. */
  readonly errorResponse?: unknown;
}

/** The server's error code. */
export function codeOf(error: unknown): number | undefined {
  const code = error instanceof Error ? (error as EngineError).code : undefined;
  return typeof code === 'number' ? code : undefined;
}

export const DUPLICATE_KEY = 11000;
export const NAMESPACE_EXISTS = 48;
export const NAMESPACE_NOT_FOUND = 26;
export const INDEX_NOT_FOUND = 27;
const COMMAND_NOT_FOUND = 59;

const UNREACHABLE: ErrorMapping = {
  code: 'connection_failed',
  message: 'The MongoDB server cannot be reached.',
  next: ['Check that the server is running, and the hosts and the replica set of the URL.'],
};
const LOST: ErrorMapping = {
  code: 'connection_lost',
  message: 'The connection to MongoDB was lost.',
  next: ['Run the command again: it checks what took effect.'],
};
const TIMED_OUT: ErrorMapping = {
  code: 'connection_lost',
  message: 'MongoDB timed out before a majority of its members confirmed a command.',
  next: [
    'Check that a majority of the members of the replica set is running.',
    'Run the command again: it checks what took effect.',
  ],
};
const BAD_CREDENTIALS: ErrorMapping = {
  code: 'authentication_failed',
  message: 'MongoDB rejected the credentials.',
  next: ['Check the user, the password and the authSource of the URL.'],
};
/** Other servers with MongoDB's protocol may not support authentication. */
const NO_USERS: ErrorMapping = {
  code: 'authentication_failed',
  message: 'The MongoDB server does not support authentication.',
  next: ['Leave user and password out of the URL, or check that it is the right server.'],
};
const VIOLATES: ErrorMapping = {
  code: 'data_violates',
  message: 'Documents in the collection do not allow the change.',
};
const INDEX_EXISTS: ErrorMapping = {
  code: 'index_exists',
  message: 'Another index has that name or those fields.',
  next: ['Use another name, or drop the existing index.'],
};
const TOO_LARGE: ErrorMapping = {
  code: 'value_invalid',
  message: 'A document would be too large for MongoDB.',
  next: ['Store less in one document: its limit is 16 MB.'],
};
const FAILED: ErrorMapping = { code: 'migration_failed', message: 'MongoDB rejected a command.' };

const MAPPING_BY_CODE: Readonly<Record<number, ErrorMapping>> = {
  13: {
    code: 'permission_denied',
    message: 'The database user is not permitted to do this.',
    next: ['Use a user with the roles readWrite and dbAdmin on the database, or grant them.'],
  },
  18: BAD_CREDENTIALS,
  8000: BAD_CREDENTIALS,
  26: { code: 'collection_unknown', message: 'The collection does not exist.' },
  27: { code: 'index_unknown', message: 'The index does not exist.' },
  48: {
    code: 'collection_exists',
    message: 'The table already exists.',
    next: TABLE_EXISTS_REMEDIES,
  },
  50: TIMED_OUT,
  64: TIMED_OUT,
  85: INDEX_EXISTS,
  86: INDEX_EXISTS,
  10334: TOO_LARGE,
  17419: TOO_LARGE,
  17420: TOO_LARGE,
  115: { code: 'not_supported', message: 'This server does not support the command.' },
  121: VIOLATES,
  241: VIOLATES,
  11000: VIOLATES,
};

/**
 * The primary steps down, shuts down or is not elected yet, as reported by itself or by a router (6, 7, 89, 133, 134); a
 * cursor was lost with it (43); the time limit of an operation (50) or of its write concern (64) was exceeded. The driver
 * resends only some commands.
 */
const LOST_CODES: ReadonlySet<number> = new Set([
  6, 7, 43, 50, 64, 89, 91, 133, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436,
]);
const NETWORK =
  /^(PoolClearedOnNetworkError|Mongo(Network|PoolCleared|PoolClosed|ConnectionClosed|TopologyClosed|NotConnected|ServerClosed))/;

/** The connection or the primary was lost, or a time limit was exceeded: whether the command was applied is unknown. */
export function isLost(thrown: unknown): boolean {
  const error = innermost(thrown);
  if (!(error instanceof Error)) return false;
  const { name, errorLabels } = error as EngineError;
  return (
    NETWORK.test(name) || LOST_CODES.has(codeOf(error) ?? 0) || errorLabels?.includes('RetryableWriteError') === true
  );
}

function innermost(error: unknown): unknown {
  const inner = error instanceof Error ? (error as EngineError).errorResponse : undefined;
  return inner instanceof Error ? inner : error;
}

/** A MongoDB error as an `SvcError`, with its code and message in `why`; anything else unchanged. */
export function toSvcError(thrown: unknown): unknown {
  const error = innermost(thrown);
  if (!(error instanceof Error) || isSvcError(error) || !/^(Mongo|BSON|PoolCleared)/.test(error.name)) return error;
  const code = codeOf(error);
  const mapping = mappingOf(error, code);
  return mappedError(mapping, {
    why: code === undefined ? error.message : `${code}: ${messageWithoutValues(error, code)}`,
    details: code === undefined ? {} : { engineCode: code },
    // The server's own error shows values of the document.
    cause: mapping === VIOLATES ? new Error(messageWithoutValues(error, code ?? 0)) : error,
  });
}

/** `toSvcError` for an error of an open connection: an unreachable server is a lost connection. */
export function toRunError(error: unknown): unknown {
  const svcError = toSvcError(error);
  if (!isSvcError(svcError) || svcError.code !== UNREACHABLE.code) return svcError;
  return mappedError(LOST, { ...(svcError.why !== undefined && { why: svcError.why }), cause: error });
}

/** The message of a duplicate key shows the value. */
function messageWithoutValues({ message }: Error, code: number): string {
  return code === DUPLICATE_KEY ? message.replace(/ dup key: .*$/s, '') : message;
}

function mappingOf(error: Error, code: number | undefined): ErrorMapping {
  if (error.name === 'MongoServerSelectionError') {
    // The cause is the error of the last server that was tried.
    const cause = error.cause instanceof Error ? codeOf(error.cause) : undefined;
    return cause === 18 || cause === 8000 ? BAD_CREDENTIALS : UNREACHABLE;
  }
  if (isLost(error)) return MAPPING_BY_CODE[code ?? 0] ?? LOST;
  if (/Authentication/i.test(error.message) && code === undefined) return BAD_CREDENTIALS;
  if (code === COMMAND_NOT_FOUND && /\bsasl/.test(error.message)) return NO_USERS;
  // An insert reports it as a bad value, and DocumentDB has its own codes.
  if (/object to insert too large|MaxDocumentSize/i.test(error.message)) return TOO_LARGE;
  return MAPPING_BY_CODE[code ?? 0] ?? FAILED;
}

const MAX_DOCUMENT_BYTES = 16 * 1024 * 1024;

/** Throws `value_invalid`. The driver and the server report no reason for a message that is too large. */
export function assertDocumentSize(collection: string, set: Readonly<Record<string, unknown>>): void {
  const texts = Object.values(set).filter((value) => typeof value === 'string');
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= MAX_DOCUMENT_BYTES) return;
  const why = `It is a document of "${collection}" with ${bytes} bytes of text.`;
  throw mappedError(TOO_LARGE, { why, state: 'It was not written.' });
}

export function alreadyExistsError(collection: string): SvcError {
  return new SvcError('collection_exists', `The table "${collection}" already exists.`, {
    why: 'The database has a collection of that name.',
    next: TABLE_EXISTS_REMEDIES,
  });
}

export const withSvcErrors = convertingErrors(toSvcError);
