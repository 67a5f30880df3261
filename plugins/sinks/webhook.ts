import { headerDigest } from '../../core/approval/seal/seal.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import { definePlugin } from '../../core/plugin.ts';
import { post } from '../channels/post.ts';
import { type SignedEndpoint, signatureHeaders, signedEndpoint } from '../shared/standard-webhooks.ts';

const DIGEST_LENGTH = 16;

/**
 * Posts each seal, signed by Standard Webhooks 1.0.0. Its `webhook-id` is the same for every attempt. An answer with a status
 * of 2xx says that the receiver has stored it.
 */
function webhook({ url, keys }: SignedEndpoint): SealSink {
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
    kernel.sealSinks.register('webhook', (options) =>
      webhook(signedEndpoint(options, 'A sink', 'a sink of approvals.seals')),
    );
  },
});
