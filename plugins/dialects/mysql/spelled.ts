import { isExpression } from '../../../core/schema/default.ts';
import type { CheckConstraint, Collection, Field, SchemaModel } from '../../../core/schema/model.ts';
import { columnDefinition } from '../../sql/column.ts';
import { constraintText } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { type Exec, rowsOf, type Session } from '../../sql/session.ts';
import { readDefault } from './default.ts';
import { columnsIn } from './introspect.ts';
import { behind, withoutOuter } from './parentheses.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';

const TABLE = quote('_svc_spelled');

export interface SpellingPlace {
  readonly session: Session;
  readonly traits: Traits;
  readonly grammar: Grammar;
  /** Of the definition of a table that is made here. */
  readonly tail: string;
}

/**
 * Expressions as the server spells them: a temporary table of the same columns is made and read. It does not commit,
 * and its name hides no table of the user. `model` is what `seen` gives.
 */
export async function spelled(place: SpellingPlace, model: SchemaModel): Promise<SchemaModel> {
  const found = new Map(model);
  for (const collection of model.values()) {
    if (!hasExpressions(collection)) continue;
    found.set(collection.name, await place.session.alone((exec) => respelled(exec, place, collection)));
  }
  return found;
}

function hasExpressions({ fields, constraints }: Collection): boolean {
  return (
    [...fields.values()].some((field) => field.default !== undefined && isExpression(field.default)) ||
    [...constraints.values()].some((constraint) => constraint.type === 'check')
  );
}

async function respelled(
  exec: Exec,
  { traits, grammar, tail }: SpellingPlace,
  collection: Collection,
): Promise<Collection> {
  const { name, fields, constraints } = collection;
  const checks = [...constraints.values()].filter((constraint) => constraint.type === 'check');
  const lines = [
    // A server may make no table without a key.
    '_svc_n int PRIMARY KEY',
    ...[...fields.values()].map((field) => {
      const { autoGenerate: _, ...plain } = field;
      return columnDefinition({ ...grammar, columnCheck: () => '' }, plain, name);
    }),
    ...checks.map((check) => constraintText(grammar, check)),
  ];
  try {
    await exec(`CREATE TEMPORARY TABLE ${TABLE} (${lines.join(', ')})${tail}`);
    const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${TABLE}`);
    const text = String(row?.['Create Table']);
    return {
      ...collection,
      fields: new Map([...fields].map(([key, field]) => [key, respelledField(traits, field, text)])),
      constraints: new Map(
        [...constraints].map(([key, constraint]) => [
          key,
          constraint.type === 'check' ? respelledCheck(constraint, text, [...fields.keys()]) : constraint,
        ]),
      ),
    };
  } finally {
    await exec(`DROP TEMPORARY TABLE IF EXISTS ${TABLE}`);
  }
}

function respelledField(traits: Traits, field: Field, table: string): Field {
  if (field.default === undefined || !isExpression(field.default)) return field;
  const shown = behind(' DEFAULT ', lineOf(`${quote(field.name)} `, table));
  const found = shown === undefined ? undefined : traits.catalog.shownDefault(shown);
  if (!found) return field;
  const { default: _, ...rest } = field;
  const value = readDefault(found, rest);
  return value === undefined ? { ...rest, autoGenerate: true } : { ...rest, default: value };
}

function respelledCheck(check: CheckConstraint, table: string, fields: readonly string[]): CheckConstraint {
  const shown = lineOf(`CONSTRAINT ${quote(check.name)} CHECK `, table);
  if (shown === '') return check;
  const expression = withoutOuter(shown);
  return { ...check, expression, columns: columnsIn(expression, fields) };
}

/** The rest of the line of `SHOW CREATE TABLE` that begins so. */
function lineOf(beginning: string, table: string): string {
  const line = table.split('\n').find((one) => one.startsWith(`  ${beginning}`)) ?? '';
  return line.slice(beginning.length + 2).replace(/,$/, '');
}
