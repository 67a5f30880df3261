import { SvcError } from '../../../../core/errors.ts';
import type { Config } from '../../../define.ts';
import { withoutSlash } from '../token.ts';

/** Where the inbox is; undefined without one. */
export function inboxUrl({ approvals: { server, callbackBase } = {} }: Config): string | undefined {
  return server && callbackBase !== undefined ? `${withoutSlash(callbackBase)}/inbox` : undefined;
}

/** Throws `config_invalid` for a configuration without an inbox. */
export function assertInbox(config: Config): void {
  if (inboxUrl(config) !== undefined) return;
  throw new SvcError('config_invalid', 'The inbox needs approvals.server and approvals.callbackBase.', {
    why: 'The first says who is let in, the second where their browsers find it.',
    next: ["Add to the configuration: approvals: { server: { role: '<role>' }, callbackBase: 'https://…' }"],
  });
}
