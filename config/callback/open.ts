import { loadApprovals } from '../approval-runtime.ts';
import { callbackKeyFor } from '../callback-key.ts';
import type { Runtime } from '../runtime.ts';
import { callbackHandler } from './handler.ts';

/** The callback over the store of a configuration. Refuses one without a key: anybody could answer. */
export async function openCallback(runtime: Runtime): Promise<(request: Request) => Promise<Response>> {
  const key = callbackKeyFor('The callback', runtime.config);
  const { desk, owner } = await loadApprovals(runtime);
  return callbackHandler({ desk, product: owner.product, env: owner.env, key });
}
