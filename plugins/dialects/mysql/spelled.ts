import { isExpression } from '../../../core/schema/default.ts';
import type { CheckConstraint, Collection, Field, SchemaModel } from '../../../core/schema/model.ts';
import { columnDefinition } from '../../sql/column.ts';
import { constraintText } from '../../sql/compile.ts';
import type { Grammar } from '../../sql/grammar.ts';
import { type Exec, rowsOf, type Session } from '../../sql/session.ts';
import { type CatalogDefault, readDefault } from './default.ts';
import { columnsIn } from './introspect.ts';
import { inHex } from './marked.ts';
import { behind, withoutOuter } from './parentheses.ts';
import { quote } from './quote.ts';
import { lineOf, withStandIns } from './shown.ts';
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
      // Of a field that is required the server tells a default only beside a row.
      const { autoGenerate: _, required: __, ...plain } = field;
      return columnDefinition({ ...grammar, columnCheck: () => '' }, plain, name);
    }),
    ...checks.map((check) => constraintText(grammar, check)),
  ];
  try {
    const standing = withStandIns(lines.join(', '));
    await exec(`CREATE TEMPORARY TABLE ${TABLE} (${standing.text})${tail}`);
    const [row] = await rowsOf(exec, `SHOW CREATE TABLE ${TABLE}`);
    const text = standing.back(String(row?.['Create Table']));
    const read = new Map<string, Field>();
    for (const [key, field] of fields) read.set(key, await respelledField(exec, traits, field, text));
    return {
      ...collection,
      fields: read,
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

async function respelledField(exec: Exec, traits: Traits, field: Field, table: string): Promise<Field> {
  if (field.default === undefined || !isExpression(field.default)) return field;
  const shown = behind(' DEFAULT ', lineOf(`${quote(field.name)} `, table));
  const told = shown === undefined ? undefined : traits.catalog.shownDefault(shown);
  if (!told) return field;
  const isBytes = 'literal' in told && (field.type === 'binary' || field.type === 'blob');
  const found = isBytes ? await bytesOf(exec, field.name) : told;
  const { default: _, ...rest } = field;
  const value = readDefault(found, rest);
  return value === undefined ? { ...rest, autoGenerate: true } : { ...rest, default: value };
}

/** What is no text in any character set stands in none. */
async function bytesOf(exec: Exec, column: string): Promise<CatalogDefault> {
  const value = inHex(`DEFAULT(svc_no.${quote(column)})`);
  const [row] = await rowsOf(
    exec,
    `SELECT ${value} AS bytes FROM (SELECT 1 AS one) AS svc_one LEFT JOIN ${TABLE} AS svc_no ON FALSE`,
  );
  return { literal: String(row?.bytes) };
}

function respelledCheck(check: CheckConstraint, table: string, fields: readonly string[]): CheckConstraint {
  const shown = lineOf(`CONSTRAINT ${quote(check.name)} CHECK `, table);
  if (shown === '') return check;
  const expression = withoutOuter(shown);
  return { ...check, expression, columns: columnsIn(expression, fields) };
}
