import { type ErrorCode, isSvcError, SvcError } from '../../../core/errors.ts';
import { TAKE_OVER } from '../../take-over.ts';

interface EngineError extends Error {
  readonly code?: number | string;
  readonly errorLabels?: readonly string[];
  /** What the server said; the error itself where a bulk write ended with one that is none of the server's. */
  readonly errorResponse?: unknown;
}

/** The server's number of an error. */
export function codeOf(error: unknown): number | undefined {
  const code = error instanceof Error ? (error as EngineError).code : undefined;
  return typeof code === 'number' ? code : undefined;
}

export const DUPLICATE_KEY = 11000;
export const NAMESPACE_EXISTS = 48;
export const NAMESPACE_NOT_FOUND = 26;
export const INDEX_NOT_FOUND = 27;
const COMMAND_NOT_FOUND = 59;

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next?: readonly string[];
}

const UNREACHABLE: Meaning = {
  code: 'connection_failed',
  message: 'The MongoDB server cannot be reached.',
  next: ['Check that the server runs, and the hosts and the replica set of the URL.'],
};
const LOST: Meaning = {
  code: 'connection_lost',
  message: 'The connection to MongoDB was lost.',
  next: ['Run the command again: it finds out what was done.'],
};
const OVERDUE: Meaning = {
  code: 'connection_lost',
  message: 'MongoDB gave up on a command before it was done by a majority of its members.',
  next: [
    'Check that a majority of the members of the replica set run.',
    'Run the command again: it finds out what was done.',
  ],
};
const REFUSED: Meaning = {
  code: 'authentication_failed',
  message: 'MongoDB refused the credentials.',
  next: ['Check the user, the password and the authSource of the URL.'],
};
/** Other servers that speak MongoDB's protocol may know no users at all. */
const NO_USERS: Meaning = {
  code: 'authentication_failed',
  message: 'The MongoDB server takes no credentials.',
  next: ['Leave user and password out of the URL, or check that it is the right server.'],
};
const VIOLATES: Meaning = {
  code: 'data_violates',
  message: 'Documents in the collection do not allow the change.',
};
const INDEX_EXISTS: Meaning = {
  code: 'index_exists',
  message: 'There is another index of that name or on those fields.',
  next: ['Use another name, or drop what is there.'],
};
const TOO_LARGE: Meaning = {
  code: 'value_invalid',
  message: 'A document would be too large for MongoDB.',
  next: ['Split what is to be stored: a document has at most 16 MB.'],
};
const FAILED: Meaning = { code: 'migration_failed', message: 'MongoDB refused a command.' };

const MEANINGS: Readonly<Record<number, Meaning>> = {
  13: {
    code: 'permission_denied',
    message: 'The database user may not do this.',
    next: ['Use a user with the roles readWrite and dbAdmin on the database, or grant them.'],
  },
  18: REFUSED,
  8000: REFUSED,
  26: { code: 'collection_unknown', message: 'The collection does not exist.' },
  27: { code: 'index_unknown', message: 'The index does not exist.' },
  48: {
    code: 'collection_exists',
    message: 'The table already exists.',
    next: TAKE_OVER,
  },
  50: OVERDUE,
  64: OVERDUE,
  85: INDEX_EXISTS,
  86: INDEX_EXISTS,
  10334: TOO_LARGE,
  17419: TOO_LARGE,
  17420: TOO_LARGE,
  115: { code: 'not_supported', message: 'This server cannot do it.' },
  121: VIOLATES,
  241: VIOLATES,
  11000: VIOLATES,
};

/**
 * A primary that steps down, is shut down or is not there yet, also as a router tells it of a shard (6, 7, 89, 133, 134), a
 * cursor that went with it (43), the time of an operation (50) or of its write concern (64) that is up; the driver resends
 * only some commands.
 */
const GIVEN_UP: ReadonlySet<number> = new Set([
  6, 7, 43, 50, 64, 89, 91, 133, 134, 189, 262, 9001, 10107, 11600, 11602, 13435, 13436,
]);
const NETWORK = /^Mongo(Network|PoolCleared|PoolClosed|ConnectionClosed|TopologyClosed|NotConnected|ServerClosed)/;

/** The connection or the primary went away, or time was up: nobody knows whether the command was carried out. */
export function isLost(given: unknown): boolean {
  const error = innermost(given);
  if (!(error instanceof Error)) return false;
  const { name, errorLabels } = error as EngineError;
  return (
    NETWORK.test(name) || GIVEN_UP.has(codeOf(error) ?? 0) || errorLabels?.includes('RetryableWriteError') === true
  );
}

function innermost(error: unknown): unknown {
  const inner = error instanceof Error ? (error as EngineError).errorResponse : undefined;
  return inner instanceof Error ? inner : error;
}

/** The engine's error as a refusal, its code and words in `why`. What is none of the engine's stays as it is. */
export function refusal(given: unknown): unknown {
  const error = innermost(given);
  if (!(error instanceof Error) || isSvcError(error) || !/^(Mongo|BSON)/.test(error.name)) return error;
  const code = codeOf(error);
  const meaning = meaningOf(error, code);
  return new SvcError(meaning.code, meaning.message, {
    why: code === undefined ? error.message : `${code}: ${told(error, code)}`,
    next: meaning.next ?? [],
    details: code === undefined ? {} : { engineCode: code },
    // The server's own error shows values of the document.
    cause: meaning === VIOLATES ? new Error(told(error, code ?? 0)) : error,
  });
}

/** The same once there has been a connection: a server that is not found any more is one that was lost. */
export function lostOr(error: unknown): unknown {
  const found = refusal(error);
  if (!isSvcError(found) || found.code !== UNREACHABLE.code) return found;
  return new SvcError(LOST.code, LOST.message, {
    ...(found.why !== undefined && { why: found.why }),
    next: LOST.next ?? [],
    cause: error,
  });
}

/** A duplicate's message shows the value that stands in the document. */
function told({ message }: Error, code: number): string {
  return code === DUPLICATE_KEY ? message.replace(/ dup key: .*$/s, '') : message;
}

function meaningOf(error: Error, code: number | undefined): Meaning {
  if (error.name === 'MongoServerSelectionError') {
    // What the last server said is in its description.
    const cause = error.cause instanceof Error ? codeOf(error.cause) : undefined;
    return cause === 18 || cause === 8000 ? REFUSED : UNREACHABLE;
  }
  if (isLost(error)) return MEANINGS[code ?? 0] ?? LOST;
  if (/Authentication/i.test(error.message) && code === undefined) return REFUSED;
  if (code === COMMAND_NOT_FOUND && /\bsasl/.test(error.message)) return NO_USERS;
  // Of an insert it is only one more bad value, and DocumentDB has numbers of its own.
  if (/object to insert too large|MaxDocumentSize/i.test(error.message)) return TOO_LARGE;
  return MEANINGS[code ?? 0] ?? FAILED;
}

const MOST_BYTES = 16 * 1024 * 1024;

/** Throws `value_invalid`. A message of some size the driver cannot write and the server hangs up on, without a reason. */
export function refuseTooLarge(collection: string, set: Readonly<Record<string, unknown>>): void {
  const texts = Object.values(set).filter((value) => typeof value === 'string');
  const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
  if (bytes <= MOST_BYTES) return;
  throw new SvcError(TOO_LARGE.code, TOO_LARGE.message, {
    why: `It is one of "${collection}", with ${bytes} bytes of text.`,
    state: 'It was not written.',
    next: TOO_LARGE.next ?? [],
  });
}

/** The same refusal from a place before anything could be changed. */
export function unchanged(error: unknown): unknown {
  return isSvcError(error) && error.state === undefined ? error.with({ state: 'Nothing was changed.' }) : error;
}

export function alreadyExists(collection: string): SvcError {
  return new SvcError('collection_exists', `The table "${collection}" already exists.`, {
    why: 'The database has a collection of that name.',
    next: TAKE_OVER,
  });
}
