import type { Dialect } from '../../../core/dialect.ts';
import { compileSql } from '../../sql/compile.ts';
import { Turns } from '../../sql/turns.ts';
import { connectionOver, type Opened } from './connection.ts';
import { refusal } from './errors.ts';
import { grammar } from './grammar.ts';
import { identify, isEmbedded } from './identify.ts';
import { seen } from './seen.ts';
import { openServer } from './server.ts';
import { RESET, type Settings, settingsOf } from './settings.ts';
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
    const opened = isEmbedded(url)
      ? await import('./pglite.ts').then(({ openPglite }) => openPglite(url, settings))
      : await onServer(url, settings);
    try {
      return await connectionOver({ settings, ...opened });
    } catch (error) {
      await opened.session.close().catch(() => undefined);
      throw refusal(error);
    }
  },
};

async function onServer(url: string, settings: Settings): Promise<Omit<Opened, 'settings'>> {
  return {
    session: await openServer(url, settings),
    turns: new Turns(),
    restore: RESET,
    watch: (channel, hint) => watchServer(url, settings, channel, hint),
  };
}
