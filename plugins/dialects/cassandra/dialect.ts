import type { Dialect } from '../../../core/dialect.ts';
import { compile } from './compile.ts';
import { connectionOver } from './connection.ts';
import { NAME, nameRules } from './names.ts';
import { refuses } from './refuses.ts';
import { openSession } from './session.ts';
import { settingsOf } from './settings.ts';
import { columnTypes } from './types.ts';
import { identify, parseUrl } from './url.ts';

/** Apache Cassandra from version 4.0 on. */
export const cassandra: Dialect = {
  name: NAME,
  types: columnTypes,
  capabilities: { transactionalDdl: false, stepwise: true, names: nameRules, refuses },
  compile,
  seen: (model) => model,
  identify,
  async connect(url, options) {
    const place = parseUrl(url);
    const settings = settingsOf(options, place);
    return connectionOver(await openSession(place, settings), settings);
  },
};
