import type { Dialect } from '../../../core/dialect.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { compile } from './compile/compile.ts';
import { NAME, nameRules } from './compile/names.ts';
import { normalize } from './compile/normalize.ts';
import { objects } from './compile/objects.ts';
import type { CassandraStep } from './compile/step.ts';
import { columnTypes } from './compile/types.ts';
import { unsupported } from './compile/unsupported-features.ts';
import { createConnection } from './connection/connection.ts';
import { openSession } from './connection/session.ts';
import { settingsOf } from './connection/settings.ts';
import { identify, parseUrl } from './connection/url.ts';

/** Apache Cassandra 4.0 and later. */
export const cassandra: Dialect<CassandraStep> = {
  name: NAME,
  types: columnTypes,
  capabilities: { transactionalDdl: false, runsSegmentsSingly: true, names: nameRules, unsupported },
  compile,
  normalize,
  objects,
  identify,
  async connect(url, options) {
    const address = parseUrl(url);
    const settings = settingsOf(options, address);
    return createConnection(await openSession(address, settings), settings);
  },
};

export default definePlugin({
  name: 'cassandra',
  apply(kernel) {
    kernel.dialects.register('cassandra', cassandra);
    kernel.lintRules.register('cassandra', {
      dialects: ['cassandra'],
      load: async () => (await import('./lint.ts')).default,
    });
  },
});
