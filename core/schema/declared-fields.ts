import type { Declaration, DeclaredField, DeclaredOptions } from './declaration.ts';
import { at, invalid } from './declared-place.ts';
import { defineField, TIMESTAMPS, tableOptions } from './define.ts';
import { exists } from './lookup.ts';
import type { Field, TableOptions } from './model.ts';
import { checkTableName } from './names.ts';
import { problemText, type Shape, shapeProblems } from './shape.ts';

const REFERENCE: Shape = {
  properties: { table: 'string', column: 'string', onDelete: 'string', onUpdate: 'string' },
  required: ['table', 'column'],
};

export function declaredFields(
  name: string,
  written: Declaration['tables'][string],
  options: DeclaredOptions,
): ReadonlyMap<string, Field> {
  checkTableName(name);
  const fields = new Map<string, Field>();
  for (const [field, definition] of Object.entries(written)) {
    fields.set(
      field,
      at([field], () => declaredField(field, definition, name)),
    );
  }
  for (const { name: field, ...definition } of options.timestamps ? TIMESTAMPS : []) {
    if (fields.has(field)) throw exists('field', field, name).with({ details: { path: [field] } });
    fields.set(field, defineField(field, definition, name));
  }
  return fields;
}

export function declaredOptions(name: string, { renamedFrom: _, ...options }: DeclaredOptions): TableOptions {
  for (const key of ['temporary', 'ifNotExists'] as const) {
    if (options.sqlOptions?.[key] === undefined) continue;
    const why = `"${key}" belongs to an operation: the schema file says what tables are there.`;
    throw invalid(`The options of "${name}" are not valid.`, why, ['sqlOptions', key]);
  }
  return tableOptions(options, name);
}

function declaredField(name: string, written: DeclaredField | string, table: string): Field {
  if (typeof written !== 'object' || written === null) return defineField(name, written, table);
  const { references, renamedFrom, ...definition } = written;
  const [problem] = shapeProblems(
    { references, renamedFrom },
    { properties: { references: REFERENCE, renamedFrom: 'string' } },
  );
  if (problem) throw invalid(`The field "${table}.${name}" is not valid.`, problemText(problem), problem.path);
  return defineField(name, definition, table);
}
