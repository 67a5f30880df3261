import type { Dialect } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { normalize } from './catalog/introspect.ts';
import { compile } from './compile/compile.ts';
import { NAME, nameRules } from './compile/names.ts';
import type { DynamoStep } from './compile/step.ts';
import { attributeTypes } from './compile/types.ts';
import { unsupported } from './compile/unsupported-features.ts';
import { createSdkClient, DynamoClient, loadSdk } from './connection/client.ts';
import { createConnection } from './connection/connection.ts';
import { toSvcError } from './connection/errors.ts';
import { settingsOf } from './connection/settings.ts';
import { identify, parseUrl } from './connection/url.ts';

/** Amazon DynamoDB, or a compatible endpoint such as DynamoDB Local. */
export const dynamodb: Dialect<DynamoStep> = {
  name: NAME,
  types: attributeTypes,
  capabilities: { transactionalDdl: false, runsSegmentsSingly: true, names: nameRules, unsupported },
  compile,
  normalize,
  identify,
  async connect(url, options) {
    const address = parseUrl(url);
    const settings = settingsOf(options);
    const sdk = await loadSdk(settings);
    const sdkClient = createSdkClient(sdk, address, settings);
    const client = new DynamoClient(sdk, sdkClient, address.prefix, settings.retryTimeoutMs);
    try {
      // Fails early on a wrong endpoint or missing credentials.
      await client.assertReachable(settings.connectTimeoutMs);
    } catch (error) {
      client.close();
      const svcError = toSvcError(error);
      throw isSvcError(svcError) ? svcError.with({ state: 'Nothing was changed.' }) : svcError;
    }
    return createConnection(client, settings);
  },
};

export default definePlugin({
  name: 'dynamodb',
  apply(kernel) {
    kernel.dialects.register('dynamodb', dynamodb);
    kernel.lintRules.register('dynamodb', {
      dialects: ['dynamodb'],
      load: async () => (await import('./lint.ts')).default,
    });
  },
});
