import { SvcError } from '../../../../core/errors.ts';
import type { ObjectModel } from '../../../../core/schema/database-object.ts';
import type { SchemaModel } from '../../../../core/schema/model.ts';
import type { MigrationOperation, Operation } from '../../../../core/schema/operation.ts';
import { grantsName } from './grants.ts';
import { pathIn } from './names.ts';
import { withoutParameters, wordsOf } from './routine-signature.ts';
import { partsOf } from './statement-list.ts';

/** Throws `schema_invalid` for operations that the server would certainly refuse. The tables are those before them, the objects those after. */
export function assertAccepted(
  operations: readonly MigrationOperation[],
  { objects, tables }: { readonly objects: ObjectModel; readonly tables: SchemaModel },
): void {
  assertGrantsOfSomething(operations, objects);
  assertTypesOfFieldsStay(operations, tables);
  assertFieldsOfType(operations, objects);
}

function refused(message: string, why: string, advice: string): SvcError {
  return new SvcError('schema_invalid', message, { why, state: 'Nothing was written.', next: [advice] });
}

/** What the operations drop or rename, by the name of its file of grants. */
function assertGrantsOfSomething(operations: readonly MigrationOperation[], objects: ObjectModel): void {
  const there = [...objects.values()].map(grantsName);
  const gone = new Set<string | undefined>();
  for (const operation of operations) {
    if (operation.type === 'dropObject') gone.add(grantsName(operation));
    if (operation.type === 'createObject') gone.delete(grantsName(operation));
    if (operation.type === 'dropCollection' || operation.type === 'renameCollection') gone.add(operation.collection);
    if (operation.type === 'createCollection') gone.delete(operation.name);
    if (operation.type === 'renameCollection') gone.delete(operation.to);
  }
  for (const { kind, name } of objects.values()) {
    const target = name.startsWith('function ') ? withoutParameters(name) : name;
    if (kind !== 'grants' || !gone.has(target) || there.includes(target)) continue;
    throw refused(
      `grants/${name}.sql is about something that is dropped or renamed.`,
      'Its privileges go with it, and the server would refuse the statements of the file.',
      'Remove the file, or rename it, and change its text.',
    );
  }
}

function assertTypesOfFieldsStay(operations: readonly MigrationOperation[], tables: SchemaModel): void {
  const dropped = new Map(
    operations.flatMap((one) =>
      one.type === 'dropObject' && /^(?:.*view|type|domain)$/.test(one.kind) ? [[one.name, one]] : [],
    ),
  );
  if (dropped.size === 0) return;
  const isChanged = (table: string, field: string): boolean =>
    operations.some(
      (one) =>
        'collection' in one &&
        one.collection === table &&
        (one.type === 'dropCollection' || ('field' in one && one.field === field)),
    );
  for (const { name: table, fields } of tables.values()) {
    for (const { name: field, native = '' } of fields.values()) {
      const [type = ''] = wordsOf(native);
      const object = dropped.get(pathIn(type));
      if (object === undefined || isChanged(table, field)) continue;
      throw refused(
        `The ${object.kind.replaceAll('_', ' ')} "${object.name}" cannot be dropped or made again.`,
        `The field "${table}.${field}" has it as its type.`,
        `Change the type of "${table}.${field}" first, in a migration of its own.`,
      );
    }
  }
}

/** A table of a type has the fields of the type. */
function assertFieldsOfType(operations: readonly MigrationOperation[], objects: ObjectModel): void {
  const isReplaced = (type: string): boolean =>
    operations.some((one) => one.type === 'replaceObject' && one.kind === 'type' && one.name === type);
  for (const { kind, name: table, definition } of objects.values()) {
    if (kind !== 'settings') continue;
    const of = partsOf(definition).find(({ words }) => words[1] === 'table' && words[3] === 'of');
    const type = pathIn(of?.words[4] ?? '');
    if (!of || isReplaced(type) || !operations.some((one) => changesFields(one, table))) continue;
    throw refused(
      `The fields of the table "${table}" are those of the type "${type}".`,
      'Only the schema file has the change.',
      `Make the same change in type/${type}.sql, or remove "${of.text}" from settings/${table}.sql.`,
    );
  }
}

const changesFields = (operation: MigrationOperation, table: string): operation is Operation =>
  'collection' in operation &&
  operation.collection === table &&
  (/^(?:add|drop|rename)Field$/.test(operation.type) ||
    (operation.type === 'modifyField' && 'type' in operation.changes));
