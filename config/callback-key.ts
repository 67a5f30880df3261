import { checkCallbackKey } from '../core/approval/token.ts';
import { SvcError } from '../core/errors.ts';
import type { Config } from './define.ts';

/** The key that tokens are made with. Throws `config_invalid` where `what` needs one and there is none that can be used. */
export function callbackKeyFor(what: string, { approvals }: Config): string {
  const key = approvals?.callbackKey;
  if (key === undefined) {
    throw new SvcError('config_invalid', `${what} needs approvals.callbackKey.`, {
      why: 'Without it nobody could tell a right token from a wrong one.',
      next: ['openssl rand -base64 32    makes one; keep it out of the repository'],
    });
  }
  checkCallbackKey(key);
  return key;
}
