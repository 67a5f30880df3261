import { isSvcError } from '../../../../core/errors.ts';
import {
  convertingErrors,
  type ErrorMapping,
  LOST_CODES,
  mappedError,
  UNREACHABLE_CODES,
} from '../../shared/errors.ts';

interface EngineError extends Error {
  /** Node's error code, if there was no response. */
  readonly code?: string;
  readonly $metadata?: { readonly httpStatusCode?: number; readonly clockSkewCorrected?: boolean };
  /** The existing item, if a condition failed. */
  readonly Item?: Record<string, unknown>;
  readonly CancellationReasons?: readonly CancellationReason[];
}

/** Why one part of a transaction failed. */
export interface CancellationReason {
  readonly Code?: string;
  readonly Message?: string;
  readonly Item?: Record<string, unknown>;
}

/** Many errors of the SDK have no class of their own, only a name. */
export const errorName = (error: unknown): string => (error instanceof Error ? error.name : '');

export const isNotFound = (error: unknown): boolean => errorName(error) === 'ResourceNotFoundException';

/** A handler for `catch`. */
export function ignoreNotFound(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}

export const cancellationReasons = (error: unknown): readonly CancellationReason[] =>
  (error as EngineError).CancellationReasons ?? [];

const THROTTLING_NAMES: ReadonlySet<string | undefined> = new Set([
  'ProvisionedThroughputExceededException',
  'ProvisionedThroughputExceeded',
  'ThrottlingException',
  'ThrottlingError',
  'Throttling',
  'RequestLimitExceeded',
  'LimitExceededException',
]);
/** Another write to the same item was in progress. */
const CONFLICT_NAMES: ReadonlySet<string | undefined> = new Set([
  'TransactionConflict',
  'TransactionConflictException',
  'TransactionInProgressException',
]);

/** A response that reports parts of a request as throttled, next to others that succeeded. */
export class ThrottledError extends Error {
  override readonly name = 'ProvisionedThroughputExceededException';
}

/** LimitExceededException means either too many concurrent changes, which is transient, or a quota of tables or indexes. */
const isQuotaExceeded = (error: unknown): boolean =>
  errorName(error) === 'LimitExceededException' &&
  /limit of [\d,]+ tables|too many tables|per-table limit/i.test((error as Error).message);

export function isThrottled(error: unknown): boolean {
  if (isQuotaExceeded(error)) return false;
  return (
    THROTTLING_NAMES.has(errorName(error)) || cancellationReasons(error).some(({ Code }) => THROTTLING_NAMES.has(Code))
  );
}

/** The request had no effect, and may succeed when sent again. */
export function isTransient(error: unknown): boolean {
  if (isThrottled(error) || CONFLICT_NAMES.has(errorName(error))) return true;
  return cancellationReasons(error).some(({ Code }) => CONFLICT_NAMES.has(Code));
}

const NO_RESPONSE_CODES: ReadonlySet<string | undefined> = new Set([
  ...LOST_CODES,
  'ETIMEDOUT',
  'ECONNABORTED',
  'ERR_STREAM_PREMATURE_CLOSE',
]);

/** The request may or may not have taken effect: no response, or one with status 5xx. */
export function isOutcomeUnknown(error: unknown): boolean {
  const { code, $metadata } = error as EngineError;
  if (errorName(error) === 'TimeoutError' || NO_RESPONSE_CODES.has(code)) return true;
  return (
    ($metadata?.httpStatusCode ?? 0) >= 500 || /socket hang up|premature close/i.test((error as Error).message ?? '')
  );
}

const CREDENTIAL_ERRORS: ReadonlySet<string> = new Set([
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

const SIGNATURE_ERRORS: ReadonlySet<string> = new Set([
  'InvalidSignatureException',
  'SignatureDoesNotMatch',
  'RequestExpired',
  'RequestInTheFuture',
  'RequestTimeTooSkewed',
]);

/** Rejected because the local clock is minutes off; the SDK has corrected its clock from the response. */
export const isCorrectedClockSkew = (error: unknown): boolean =>
  SIGNATURE_ERRORS.has(errorName(error)) && (error as EngineError).$metadata?.clockSkewCorrected === true;

/** The request did not reach a server. */
export function isUnreachable(error: unknown): boolean {
  const { code = '' } = error as EngineError;
  return UNREACHABLE_CODES.includes(code) && !NO_RESPONSE_CODES.has(code);
}

const ERROR_MAPPINGS: Readonly<Record<string, ErrorMapping>> = {
  AccessDeniedException: {
    code: 'permission_denied',
    message: 'The AWS credentials do not permit this.',
    next: ['Allow the action named above in the policy of the user or role.'],
  },
  ResourceNotFoundException: { code: 'collection_unknown', message: 'The table or index does not exist.' },
  ResourceInUseException: {
    code: 'migration_failed',
    message: 'Another client is changing the table or index.',
    next: ['Run the command again when that change is complete.'],
  },
  ItemCollectionSizeLimitExceededException: {
    code: 'data_violates',
    message: 'The items of one partition key exceed 10 GB, the limit of a table with local indexes.',
  },
};

export const UNREACHABLE: ErrorMapping = {
  code: 'connection_failed',
  message: 'DynamoDB cannot be reached.',
  next: ['Check the region or the host and port of the URL, and that the server is running.'],
};

function errorMappingOf(error: EngineError): ErrorMapping | undefined {
  if (isUnreachable(error)) return UNREACHABLE;
  if (CREDENTIAL_ERRORS.has(error.name)) {
    return {
      code: 'authentication_failed',
      message: 'The AWS credentials are missing or were rejected.',
      next: ['Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run with an IAM role.'],
    };
  }
  if (isQuotaExceeded(error)) {
    return {
      code: 'migration_failed',
      message: 'A DynamoDB quota is exhausted.',
      next: ['Delete unused tables or indexes, or request a higher quota in AWS Service Quotas.'],
    };
  }
  if (isTransient(error)) {
    return {
      code: 'connection_lost',
      message: 'DynamoDB kept rejecting requests: the table or the account is throttled.',
      next: ['Run the command again: it resumes where it stopped.', 'Or raise the capacity of the table first.'],
    };
  }
  if (isOutcomeUnknown(error)) {
    return {
      code: 'connection_lost',
      message: 'DynamoDB did not respond.',
      next: ['Run the command again: it checks what took effect.'],
    };
  }
  if (ERROR_MAPPINGS[error.name]) return ERROR_MAPPINGS[error.name];
  if (error.$metadata?.httpStatusCode === undefined) return undefined;
  return { code: 'migration_failed', message: 'DynamoDB rejected a request.' };
}

/** Maps an error of the SDK to an SvcError with its name and message in `why`. Any other error is returned unchanged. */
export function toSvcError(error: unknown): unknown {
  if (!(error instanceof Error) || isSvcError(error)) return error;
  const mapping = errorMappingOf(error);
  if (!mapping) return error;
  const reasons = cancellationReasons(error).flatMap(({ Code, Message }) =>
    Code === undefined || Code === 'None' ? [] : [`${Code}${Message === undefined ? '' : `: ${Message}`}`],
  );
  const message = reasons.length > 0 ? reasons.join('; ') : error.message || String((error as EngineError).code);
  return mappedError(mapping, {
    why: `${error.name}: ${message}`,
    details: { engineCode: error.name },
    // A conflicting item may contain user data.
    cause: withoutItems(error),
  });
}

function withoutItems(error: EngineError): Error {
  if (error.Item === undefined && error.CancellationReasons === undefined) return error;
  const { message, name, stack } = error;
  return Object.assign(new Error(message), { name, stack });
}

export const withSvcErrors = convertingErrors(toSvcError);
