import { isExpression } from '../../../core/schema/default.ts';
import type { Collection, SchemaModel } from '../../../core/schema/model.ts';
import { columnDefinition } from '../../sql/column.ts';
import { constraintText } from '../../sql/compile.ts';
import { rowsOf, type Session } from '../../sql/session.ts';
import { readCatalog } from './catalog.ts';
import { isNotUnderstood } from './errors.ts';
import { grammar, quote } from './grammar.ts';
import { readTables } from './introspect.ts';

/**
 * Expressions as the server spells them: a temporary table of the same columns is made, read and rolled back. One that
 * it does not understand any more, as of a function that is gone, leaves its table as it is written: it differs from
 * whatever is there. `model` is what `seen` gives.
 */
export async function spelled(session: Session, model: SchemaModel): Promise<SchemaModel> {
  const asked = [...model.values()].filter(hasExpressions);
  if (asked.length === 0) return model;
  const found = await session.alone(async (exec) => {
    await exec('BEGIN');
    try {
      for (const collection of asked) {
        await exec(`SAVEPOINT asked; ${temporaryTable(collection)}`).catch(async (error) => {
          if (!isNotUnderstood(error)) throw error;
          await exec('ROLLBACK TO asked');
        });
      }
      const [place] = await rowsOf(exec, 'SELECT nspname FROM pg_namespace WHERE oid = pg_my_temp_schema()');
      return await readCatalog(
        exec,
        String(place?.nspname),
        asked.map(({ name }) => name),
      );
    } finally {
      await exec('ROLLBACK');
    }
  });
  const read = readTables(found).model;
  return new Map([...model].map(([name, collection]) => [name, respelled(collection, read.get(name))]));
}

function hasExpressions({ fields, constraints }: Collection): boolean {
  return (
    [...fields.values()].some((field) => field.default !== undefined && isExpression(field.default)) ||
    [...constraints.values()].some((constraint) => constraint.type === 'check')
  );
}

function temporaryTable(collection: Collection): string {
  const { name, fields, constraints } = collection;
  const lines = [
    ...[...fields.values()].map((field) => columnDefinition(grammar, { ...field, type: field.type }, name)),
    ...[...constraints.values()].filter(({ type }) => type === 'check').map((check) => constraintText(grammar, check)),
  ];
  return `CREATE TEMPORARY TABLE pg_temp.${quote(name)} (${lines.join(', ')})`;
}

function respelled(collection: Collection, read: Collection | undefined): Collection {
  if (!read) return collection;
  const fields = new Map(collection.fields);
  for (const [name, field] of fields) {
    if (field.default === undefined || !isExpression(field.default)) continue;
    const { default: value, autoGenerate } = read.fields.get(name) ?? {};
    const { default: written, ...rest } = field;
    fields.set(name, {
      ...rest,
      ...(value !== undefined && { default: value }),
      ...(autoGenerate && { autoGenerate }),
    });
  }
  const constraints = new Map(collection.constraints);
  for (const [name, constraint] of constraints) {
    if (constraint.type === 'check') constraints.set(name, read.constraints.get(name) ?? constraint);
  }
  return { ...collection, fields, constraints };
}
