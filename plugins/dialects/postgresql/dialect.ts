import type { Dialect } from '../../../core/dialect.ts';
import { compileSql } from '../../sql/compile.ts';
import { Turns } from '../../sql/turns.ts';
import { connectionOver } from './connection.ts';
import { refusal } from './errors.ts';
import { grammar } from './grammar.ts';
import { identify, isEmbedded } from './identify.ts';
import { seen } from './seen.ts';
import { openServer } from './server.ts';
import { RESET, settingsOf } from './settings.ts';
import { columnTypes } from './types.ts';
import { watchServer } from './watch.ts';

/** PostgreSQL from version 12 on, and PGlite for URLs that begin with `pglite://`. */
export const postgresql: Dialect = {
  name: 'postgresql',
  types: columnTypes,
  capabilities: { transactionalDdl: true, names: grammar.names, refuses: grammar.refuses },
  compile: (operation, before) => compileSql(grammar, operation, before),
  seen,
  identify,
  async connect(url, options) {
    const settings = settingsOf(options);
    identify(url);
    if (isEmbedded(url)) {
      const { openPglite } = await import('./pglite.ts');
      return connectionOver({ settings, ...(await openPglite(url, settings)) });
    }
    const session = await openServer(url, settings);
    try {
      return await connectionOver({
        session,
        settings,
        turns: new Turns(),
        restore: RESET,
        watch: (channel, hint) => watchServer(url, settings, channel, hint),
      });
    } catch (error) {
      await session.close().catch(() => undefined);
      throw refusal(error);
    }
  },
};
