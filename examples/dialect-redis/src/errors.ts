import { type ErrorCode, isSvcError, SvcError } from '@svc/sdk';

const CODES: readonly (readonly [pattern: RegExp, code: ErrorCode, message: string])[] = [
  [/^(WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password)/, 'authentication_failed', 'Redis rejected the credentials.'],
  [/^NOPERM/, 'permission_denied', 'The Redis user lacks a permission.'],
  [/DB index is out of range|^ERR invalid DB/, 'database_missing', 'The server has no database with that number.'],
  [/^(LOADING|MASTERDOWN|READONLY)/, 'connection_failed', 'The Redis server cannot be written to.'],
  [/ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|timeout/i, 'connection_failed', 'The Redis server cannot be reached.'],
  [/closed|offline|ECONNRESET|EPIPE|Disconnects/i, 'connection_lost', 'The connection to Redis was lost.'],
];

/** An error of the client or the server as an `SvcError`, with its message in `why`. */
export function toSvcError(error: unknown): unknown {
  if (isSvcError(error) || !(error instanceof Error)) return error;
  const text = 'code' in error ? `${error.code} ${error.message}` : error.message;
  const known = CODES.find(([pattern]) => pattern.test(text));
  const [, code, message] = known ?? [/./, 'migration_failed' as const, 'Redis rejected a command.'];
  return new SvcError(code, message, { why: error.message, cause: error });
}

/** Throws if the server may lose or evict what it has confirmed. Undefined: the user may not read its settings. */
export function assertDurable(config: Readonly<Record<string, string>> | undefined): void {
  const evicts = config?.['maxmemory-policy']?.startsWith('allkeys');
  if (config?.appendonly !== 'no' && !evicts) return;
  throw new SvcError('not_supported', 'This Redis server may lose what it has confirmed.', {
    why: evicts ? 'Its maxmemory-policy evicts any key.' : 'Its appendonly is "no", so a restart loses recent writes.',
    next: [
      evicts ? 'redis-cli CONFIG SET maxmemory-policy noeviction' : 'redis-cli CONFIG SET appendonly yes',
      'Or, where the loss of migrations and approvals is acceptable: options: { allowVolatile: true }',
    ],
  });
}
