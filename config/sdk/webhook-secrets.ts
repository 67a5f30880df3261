import { webhookSecret } from '../../core/approval/token.ts';
import { SvcError } from '../../core/errors.ts';
import { addressProblem } from '../../core/url.ts';
import type { Runtime } from '../load/runtime.ts';
import { requireCallbackKey } from './callback/token.ts';

/**
 * The secrets that sign requests to a webhook: those of `approvals.webhook.secrets`, otherwise the derived one. Throws
 * `config_invalid` if every secret of that URL is undefined, and without a usable callback key.
 */
export function webhookSecrets(runtime: Runtime, url: string): readonly string[] {
  const configured = configuredSecrets(runtime, url);
  if (configured === undefined) return [derivedWebhookSecret(runtime, url)];
  const usable = configured.filter((secret) => secret !== undefined);
  if (usable.length > 0) return usable;
  throw new SvcError('config_invalid', `The approval webhook ${url} has no secret.`, {
    why: `Every entry of approvals.webhook.secrets['${url}'] is undefined.`,
    next: [
      'Set the environment variable that contains the secret.',
      `svc approvals secret ${url}    prints the derived secret, which applies once that entry is removed`,
    ],
  });
}

/** The secret of a webhook without an entry in `approvals.webhook.secrets`. */
export function derivedWebhookSecret({ config, product, env }: Runtime, url: string): string {
  const key = requireCallbackKey('The secret of an approval webhook', config);
  return webhookSecret(key, { product, env, url: normalized(url) });
}

/** Throws `usage` for a URL that no agent can have as its webhook. */
export function assertWebhookUrl(url: string): void {
  const why = addressProblem(url);
  if (why) throw new SvcError('usage', `The URL of the webhook ${why}.`);
}

/** The configured secrets of a URL, however the URL is spelled; undefined without an entry. */
export function configuredSecrets({ config }: Runtime, url: string): readonly (string | undefined)[] | undefined {
  const { secrets = {} } = config.approvals?.webhook ?? {};
  const key = Object.hasOwn(secrets, url) ? url : Object.keys(secrets).find((one) => isSameUrl(one, url));
  return key === undefined ? undefined : secrets[key];
}

function isSameUrl(one: string, other: string): boolean {
  return URL.canParse(one) && normalized(one) === normalized(other);
}

function normalized(url: string): string {
  return new URL(url).href;
}
