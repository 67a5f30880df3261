import { type ErrorCode, isSvcError, SvcError } from '../../../core/errors.ts';

interface EngineError extends Error {
  /** Node's, where no answer came. */
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: boolean };
  /** Of a condition that did not hold: the item that stands. */
  readonly Item?: Record<string, unknown>;
  readonly CancellationReasons?: readonly Reason[];
}

/** Why one part of a transaction did not hold. */
export interface Reason {
  readonly Code?: string;
  readonly Message?: string;
  readonly Item?: Record<string, unknown>;
}

/** Many errors have no class of their own: their name tells. */
export const nameOf = (error: unknown): string => (error instanceof Error ? error.name : '');

export const isMissing = (error: unknown): boolean => nameOf(error) === 'ResourceNotFoundException';

export const reasonsOf = (error: unknown): readonly Reason[] => (error as EngineError).CancellationReasons ?? [];

const THROTTLED: ReadonlySet<string | undefined> = new Set([
  'ProvisionedThroughputExceededException',
  'ProvisionedThroughputExceeded',
  'ThrottlingException',
  'ThrottlingError',
  'Throttling',
  'RequestLimitExceeded',
  'LimitExceededException',
]);
/** Somebody else's write was under way on the same item. */
const IN_THE_WAY: ReadonlySet<string | undefined> = new Set([
  'TransactionConflict',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

/** A part of a request that the engine was too busy for, which its answer tells beside the parts that were done. */
export class TooMuch extends Error {
  override readonly name = 'ProvisionedThroughputExceededException';
}

/** One name for too many changes at once, which passes, and for as many tables or indexes as there may be. */
const isUsedUp = (error: unknown): boolean =>
  nameOf(error) === 'LimitExceededException' &&
  /limit of [\d,]+ tables|too many tables|per-table limit/i.test((error as Error).message);

export function isThrottled(error: unknown): boolean {
  if (isUsedUp(error)) return false;
  return THROTTLED.has(nameOf(error)) || reasonsOf(error).some(({ Code }) => THROTTLED.has(Code));
}

/** Nothing was done, and the same request may pass in a moment. */
export function isPassing(error: unknown): boolean {
  if (isThrottled(error) || IN_THE_WAY.has(nameOf(error))) return true;
  return reasonsOf(error).some(({ Code }) => IN_THE_WAY.has(Code));
}

const NO_ANSWER: ReadonlySet<string | undefined> = new Set([
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

/** Nobody knows whether it was done: no answer came, or one from a server that had trouble. */
export function isUnknown(error: unknown): boolean {
  const { code, $metadata } = error as EngineError;
  if (nameOf(error) === 'TimeoutError' || NO_ANSWER.has(code)) return true;
  return (
    ($metadata?.httpStatusCode ?? 0) >= 500 || /socket hang up|premature close/i.test((error as Error).message ?? '')
  );
}

const NOT_REACHED: ReadonlySet<string | undefined> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
const UNREADABLE_CREDENTIALS: ReadonlySet<string> = new Set([
  'CredentialsProviderError',
  'UnrecognizedClientException',
  'InvalidSignatureException',
  'IncompleteSignature',
  'IncompleteSignatureException',
  'MissingAuthenticationToken',
  'MissingAuthenticationTokenException',
  'ExpiredToken',
  'ExpiredTokenException',
  'InvalidClientTokenId',
  'TokenProviderError',
]);

const SIGNED_AT: ReadonlySet<string> = new Set([
  'InvalidSignatureException',
  'SignatureDoesNotMatch',
  'RequestExpired',
  'RequestInTheFuture',
  'RequestTimeTooSkewed',
]);

/** Refused unread: it was signed by a clock that is minutes off, which the driver has put right by the answer's. */
export const isMistimed = (error: unknown): boolean =>
  SIGNED_AT.has(nameOf(error)) && (error as EngineError).$metadata?.clockSkewCorrected === true;

/** It did not get there: sending it again does nothing twice. */
export const isNotReached = (error: unknown): boolean => NOT_REACHED.has((error as EngineError).code);

interface Meaning {
  readonly code: ErrorCode;
  readonly message: string;
  readonly next?: readonly string[];
}

const MEANINGS: Readonly<Record<string, Meaning>> = {
  AccessDeniedException: {
    code: 'permission_denied',
    message: 'The AWS credentials may not do this.',
    next: ['Allow the action named above in the policy of the user or role.'],
  },
  ResourceNotFoundException: { code: 'collection_unknown', message: 'The table or index does not exist.' },
  ResourceInUseException: {
    code: 'migration_failed',
    message: 'The table or index is being changed by somebody else.',
    next: ['Run the command again when that is done.'],
  },
  ItemCollectionSizeLimitExceededException: {
    code: 'data_violates',
    message: 'The items of one partition key are over 10 GB, which a local index does not allow.',
  },
};

function meaningOf(error: EngineError): Meaning | undefined {
  if (isNotReached(error)) {
    return {
      code: 'connection_failed',
      message: 'DynamoDB cannot be reached.',
      next: ['Check the region or the host and port of the URL, and that the server runs.'],
    };
  }
  if (UNREADABLE_CREDENTIALS.has(error.name)) {
    return {
      code: 'authentication_failed',
      message: 'DynamoDB got no credentials that it takes.',
      next: ['Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run where a role is attached.'],
    };
  }
  if (isUsedUp(error)) {
    return {
      code: 'migration_failed',
      message: 'A quota of DynamoDB is used up.',
      next: ['Delete tables or indexes that nobody needs any more, or ask AWS for a higher quota: Service Quotas.'],
    };
  }
  if (isPassing(error)) {
    return {
      code: 'connection_lost',
      message: 'DynamoDB went on refusing requests: the table or the account is throttled.',
      next: ['Run the command again: it goes on where it stopped.', 'Or raise the capacity of the table first.'],
    };
  }
  if (isUnknown(error)) {
    return {
      code: 'connection_lost',
      message: 'DynamoDB did not answer.',
      next: ['Run the command again: it finds out what was done.'],
    };
  }
  if (MEANINGS[error.name]) return MEANINGS[error.name];
  if (error.$metadata?.httpStatusCode === undefined) return undefined;
  return { code: 'migration_failed', message: 'DynamoDB refused a request.' };
}

/** The engine's error as a refusal, its name and words in `why`. What is none of the engine's stays as it is. */
export function refusal(error: unknown): unknown {
  if (!(error instanceof Error) || isSvcError(error)) return error;
  const meaning = meaningOf(error);
  if (!meaning) return error;
  const reasons = reasonsOf(error).flatMap(({ Code, Message }) =>
    Code === undefined || Code === 'None' ? [] : [`${Code}${Message === undefined ? '' : `: ${Message}`}`],
  );
  const words = reasons.length > 0 ? reasons.join('; ') : error.message || String((error as EngineError).code);
  return new SvcError(meaning.code, meaning.message, {
    why: `${error.name}: ${words}`,
    next: meaning.next ?? [],
    details: { engineCode: error.name },
    // The item that stood in the way is data.
    cause: withoutItems(error),
  });
}

function withoutItems(error: EngineError): Error {
  if (error.Item === undefined && error.CancellationReasons === undefined) return error;
  const { message, name, stack } = error;
  return Object.assign(new Error(message), { name, stack });
}
