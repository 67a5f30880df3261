import { headerDigest } from '../../core/approval/seal/seal.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import { SvcError } from '../../core/errors.ts';
import { definePlugin } from '../../core/plugin.ts';
import { addressProblem } from '../../core/url.ts';
import { post } from '../channels/post.ts';
import { decodeSecrets, signatureHeaders } from '../shared/standard-webhooks.ts';

const DIGEST_LENGTH = 16;

/**
 * Posts each seal, signed by Standard Webhooks 1.0.0. Its `webhook-id` is the same for every attempt. An answer with a status
 * of 2xx says that the receiver has stored it.
 */
function webhook(url: string, keys: readonly Buffer[]): SealSink {
  return {
    async write(seal, signal) {
      const body = JSON.stringify(seal);
      // The number alone may come twice: after the store was restored from a backup.
      const id = `seal-${seal.product}-${seal.env}-${seal.seal}-${headerDigest(seal).slice(0, DIGEST_LENGTH)}`;
      const headers = {
        'content-type': 'application/json',
        ...signatureHeaders(keys, id, Math.floor(Date.now() / 1000), body),
      };
      const response = await post(url, body, { headers, signal });
      // The body may be endless.
      void response.body?.cancel().catch(() => undefined);
    },
  };
}

export default definePlugin({
  name: 'seal webhook',
  apply(kernel) {
    kernel.sealSinks.register('webhook', ({ url, secrets }) => {
      const why = typeof url === 'string' ? addressProblem(url) : 'is not a URL';
      if (why !== undefined || typeof url !== 'string') throw invalid(`Its url ${why}.`);
      if (!Array.isArray(secrets) || secrets.length === 0 || secrets.some((one) => typeof one !== 'string'))
        throw invalid('Its secrets are not an array of texts.');
      return webhook(url, decodeSecrets(secrets, 'a sink of approvals.seals'));
    });
  },
});

function invalid(why: string): SvcError {
  return new SvcError('config_invalid', 'A sink of the type "webhook" cannot be used.', {
    why,
    next: ["Set url, and secrets: ['whsec_…']; echo whsec_$(openssl rand -base64 32) creates one."],
  });
}
