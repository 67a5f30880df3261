import { definePlugin, SvcError } from '@svc/sdk';
import { keyValueDialect, UNSUPPORTED_BY_KEY_VALUE } from '@svc/sdk/dialect';
import { open } from './driver.ts';

function identify(url: string): string {
  const { protocol, hostname, port, pathname } = URL.canParse(url) ? new URL(url) : new URL('unknown:');
  if (/^rediss?:$/.test(protocol) && hostname !== '' && /^(\/\d*)?$/.test(pathname))
    return `redis:${hostname}:${port || '6379'}/${Number(pathname.slice(1))}`;
  throw new SvcError('url_invalid', 'The URL of the Redis database is invalid.', {
    next: ['Use the form redis://user:password@host:6379/0, or rediss:// for TLS.'],
  });
}

export const redis = keyValueDialect({
  name: 'redis',
  unsupported: {
    ...UNSUPPORTED_BY_KEY_VALUE,
    unique: { why: 'Redis does not compare hashes.', next: 'Claim each value with SET … NX.' },
    index: { why: 'Redis does not index hashes.', next: 'Write to a sorted set as well.' },
    generatedInteger: { why: 'Redis fills in no values.', next: 'Take the number from INCR.' },
  },
  identify,
  open: (url, options) => open(url, identify(url), options),
});

export default definePlugin({
  name: 'redis',
  api: 1,
  apply: (kernel) => kernel.dialects.register(redis.name, redis),
});

declare module '@svc/sdk' {
  interface Dialects {
    redis: true;
  }
}
