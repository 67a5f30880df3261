import type { Dialect } from '../../../core/dialect.ts';
import { compile } from './compile.ts';
import { connectionOver } from './connection.ts';
import { identify } from './identify.ts';
import { openServer } from './open.ts';
import { NAME, names, refuses } from './refuses.ts';
import { settingsOf } from './settings.ts';
import { bsonNames } from './types.ts';

/** MongoDB from version 5.0 on, and what speaks its protocol as DocumentDB does. */
export const mongodb: Dialect = {
  name: NAME,
  types: bsonNames,
  capabilities: { transactionalDdl: false, stepwise: true, names, refuses },
  compile,
  // The registry keeps what a validator cannot say.
  seen: (model) => model,
  identify,
  async connect(url, options) {
    const settings = settingsOf(options);
    identify(url);
    return connectionOver(await openServer(url, settings), settings);
  },
};
