import type { Dialect } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import { compileSql } from '../../sql/compile.ts';
import { identify } from './address.ts';
import { connect } from './connection.ts';
import type { Flavour } from './flavour.ts';
import { grammarOf } from './grammar.ts';
import { seen } from './seen.ts';
import { settingsOf } from './settings.ts';
import { columnTypes } from './types.ts';
import { violating } from './violating.ts';

export function dialectOf(flavour: Flavour): Dialect {
  const { name, title, traits, schemes } = flavour;
  const grammar = grammarOf(traits);
  return {
    name,
    types: columnTypes,
    capabilities: { transactionalDdl: false, names: grammar.names, refuses: grammar.refuses },
    compile(operation, before) {
      const [first, ...more] = compileSql(grammar, operation, before);
      const told = violating(traits, operation, before);
      if (!first || told.length === 0) return first ? [first, ...more] : [];
      return [{ ...first, run: { ...(first.run as object), violating: told } as unknown as Json }, ...more];
    },
    seen,
    identify: (url) => identify(url, schemes),
    connect: async (url, options) => connect(flavour, url, settingsOf(options, title)),
  };
}
