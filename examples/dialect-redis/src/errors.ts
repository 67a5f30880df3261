import { SvcError } from '@svc/sdk';
import { errorConverter } from '@svc/sdk/dialect';

export const toSvcError = errorConverter({
  engine: 'Redis',
  messages: {
    authentication_failed: /^(WRONGPASS|NOAUTH|ERR AUTH|ERR invalid password)/,
    permission_denied: /^NOPERM/,
    database_missing: /DB index is out of range/,
    connection_failed: /^(LOADING|MASTERDOWN|READONLY)|ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ETIMEDOUT|timeout/,
    connection_lost: /closed|offline|ECONNRESET|EPIPE|Disconnect/i,
  },
});

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
