import type { Dialect } from '../../../core/dialect.ts';
import { isSvcError } from '../../../core/errors.ts';
import { Api } from './api.ts';
import { compile } from './compile.ts';
import { connectionOver } from './connection.ts';
import { loadSdk, makeClient } from './driver.ts';
import { refusal } from './errors.ts';
import { names } from './names.ts';
import { seen } from './normal.ts';
import { identify, placeOf } from './place.ts';
import { refusals } from './refusals.ts';
import { settingsOf } from './settings.ts';
import { attributeTypes } from './types.ts';

/** DynamoDB of AWS, or whatever answers as it does on this machine. */
export const dynamodb: Dialect = {
  name: 'dynamodb',
  types: attributeTypes,
  capabilities: { transactionalDdl: false, stepwise: true, names, refuses: refusals },
  compile,
  seen,
  identify,
  async connect(url, options) {
    const place = placeOf(url);
    const settings = settingsOf(options);
    const sdk = await loadSdk(settings);
    const api = new Api(sdk, makeClient(sdk, place, settings), place.prefix, settings.patienceMs);
    try {
      // Tells at once what cannot be reached and who is not let in, and what the time is there.
      await api.once('ListTables', { Limit: 1 });
    } catch (error) {
      api.close();
      const told = refusal(error);
      throw isSvcError(told) ? told.with({ state: 'Nothing was changed.' }) : told;
    }
    return connectionOver(api, settings);
  },
};
