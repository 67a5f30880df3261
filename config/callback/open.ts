import { checkCallbackKey } from '../../core/approval/token.ts';
import { SvcError } from '../../core/errors.ts';
import { loadApprovals } from '../approval-runtime.ts';
import type { Runtime } from '../runtime.ts';
import { callbackHandler } from './handler.ts';

/** The callback over the store of a configuration. Refuses one without a key: anybody could answer. */
export async function openCallback(runtime: Runtime): Promise<(request: Request) => Promise<Response>> {
  const { callbackKey: key } = runtime.config.approvals ?? {};
  if (key === undefined) {
    throw new SvcError('config_invalid', 'The callback needs approvals.callbackKey.', {
      why: 'Without it nobody could tell a right token from a wrong one.',
      next: ['openssl rand -base64 32    makes one; keep it out of the repository'],
    });
  }
  checkCallbackKey(key);
  const { desk, owner } = await loadApprovals(runtime);
  return callbackHandler({ desk, product: owner.product, env: owner.env, key });
}
