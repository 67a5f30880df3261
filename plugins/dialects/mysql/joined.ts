import type { Foreseen } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Exec } from '../../sql/session.ts';
import { readCatalog } from './catalog.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';
import type { Joins } from './violating.ts';

/** A foreign key that a statement makes. */
export interface MadeKey extends Joins {
  readonly statement: number;
  readonly table: string;
  /** The table is there as it was at the start, and not made by the run. */
  readonly there: boolean;
}

/** Foreign keys whose columns the server does not join: a model does not tell an unsigned number, or MariaDB's own uuid. */
export async function unjoined(exec: Exec, traits: Traits, keys: readonly MadeKey[]): Promise<Foreseen[]> {
  const tables = keys.flatMap(({ table, there, parent }) => (there ? [table, parent] : [parent]));
  const catalog = await readCatalog(exec, traits, [...new Set(tables)]);
  const typeOf = (table: string, column: string | undefined) =>
    catalog.find(({ name }) => name === table)?.columns.find(({ name }) => name === column)?.type;
  return keys.flatMap(({ statement, table, there, columns, types, parent, target }) =>
    columns.flatMap((column, index): Foreseen[] => {
      const own = (there ? typeOf(table, column) : undefined) ?? types[index] ?? '';
      const other = typeOf(parent, target[index]);
      if (other === undefined || kindOf(own) === kindOf(other)) return [];
      const error = new SvcError('constraint_invalid', `"${table}.${column}" cannot point at "${parent}".`, {
        why: `It is of type ${own}, "${parent}.${target[index]}" of type ${other}, and the server wants one type at both ends.`,
        next: [
          `Give it that type in a raw statement before the constraint: ALTER TABLE ${quote(table)} MODIFY ${quote(column)} ${other}`,
        ],
      });
      return [{ statement, error }];
    }),
  );
}

/** Of types that have to be the very same: the rest has kinds that join. */
const kindOf = (type: string): string => KINDS.exec(type.replace(/\(\d+\)/, ''))?.[0] ?? '';
const KINDS = /^((tiny|small|medium|big)?int( unsigned)?|uuid)\b/;
