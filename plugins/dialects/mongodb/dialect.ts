import type { Dialect } from '../../../core/dialect.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { compile } from './compile/compile.ts';
import { NAME, nameRules } from './compile/names.ts';
import type { MongoStep } from './compile/step.ts';
import { typeNames } from './compile/types.ts';
import { unsupported } from './compile/unsupported-features.ts';
import { views } from './compile/views.ts';
import { createConnection } from './connection/connection.ts';
import { openServer } from './connection/server.ts';
import { settingsOf } from './connection/settings.ts';
import { identify } from './connection/url.ts';

/** MongoDB from version 5.0, and servers with its protocol such as DocumentDB. */
export const mongodb: Dialect<MongoStep> = {
  name: NAME,
  types: typeNames,
  capabilities: {
    transactionalDdl: false,
    runsSegmentsSingly: true,
    storesFields: true,
    names: nameRules,
    unsupported,
  },
  compile,
  // The registry stores what a validator cannot describe.
  normalize: (model) => model,
  objects: views,
  identify,
  async connect(url, options) {
    const settings = settingsOf(options);
    identify(url);
    return createConnection(await openServer(url, settings), settings);
  },
};

export default definePlugin({
  name: 'mongodb',
  apply(kernel) {
    kernel.dialects.register(mongodb.name, mongodb);
    kernel.lintRules.register('mongodb', {
      dialects: ['mongodb'],
      load: async () => (await import('./lint.ts')).default,
    });
  },
});
