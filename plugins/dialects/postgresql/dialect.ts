import type { Dialect } from '../../../core/dialect.ts';
import { definePlugin } from '../../../core/plugin.ts';
import { Mutex } from '../shared/mutex.ts';
import { compileSql } from '../sql/compile.ts';
import { normalize } from './catalog/normalize.ts';
import { grammar } from './compile/grammar.ts';
import { countLocks } from './compile/lock-count.ts';
import { mirroringGrammar } from './compile/mirror.ts';
import { objects } from './compile/objects.ts';
import { compileOnline } from './compile/online.ts';
import type { PostgresqlStep } from './compile/step.ts';
import { columnTypes } from './compile/types.ts';
import { createConnection, type OpenSession } from './connection/connection.ts';
import { toSvcError } from './connection/errors.ts';
import { assertDriver, listenOnServer, openServer } from './connection/server.ts';
import { RESET_SESSION, type Settings, settingsOf } from './connection/settings.ts';
import { identify, isEmbedded } from './connection/url.ts';

/** A server with default settings holds at least 64 * 100, and other sessions need some of them. */
const LOCKS_PER_MIGRATION = 3200;

/** PostgreSQL from version 12 on, and PGlite for URLs that begin with `pglite://`. */
export const postgresql: Dialect<PostgresqlStep> = {
  name: 'postgresql',
  types: columnTypes,
  capabilities: {
    transactionalDdl: true,
    mirrorsFields: true,
    names: grammar.names,
    unsupported: grammar.unsupported,
    transactionLocks: { count: countLocks, perMigration: LOCKS_PER_MIGRATION },
  },
  compile: (operation, before) => compileSql(mirroringGrammar, operation, before),
  compileOnline,
  normalize,
  objects,
  identify,
  async assertDriver(url, root) {
    if (!isEmbedded(url)) await assertDriver(root);
  },
  async connect(url, options) {
    const settings = settingsOf(options);
    identify(url);
    const opened = isEmbedded(url)
      ? await import('./connection/pglite.ts').then(({ openPglite }) => openPglite(url, settings))
      : await onServer(url, settings);
    try {
      return await createConnection({ settings, ...opened });
    } catch (error) {
      await opened.session.close().catch(() => undefined);
      throw toSvcError(error);
    }
  },
};

async function onServer(url: string, settings: Settings): Promise<Omit<OpenSession, 'settings'>> {
  return {
    session: await openServer(url, settings),
    mutex: new Mutex(),
    restoreSettings: RESET_SESSION,
    watch: (channel, notify) => listenOnServer(url, settings, channel, notify),
  };
}

export default definePlugin({
  name: 'postgresql',
  apply(kernel) {
    kernel.dialects.register('postgresql', postgresql);
    kernel.lintRules.register('postgresql', {
      dialects: ['postgresql'],
      load: async () => (await import('./lint/index.ts')).default,
    });
  },
});
