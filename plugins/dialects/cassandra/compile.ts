import { isDeepStrictEqual } from 'node:util';
import type { Statement } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { apply } from '../../../core/schema/apply.ts';
import { defineField } from '../../../core/schema/define.ts';
import { refuseUnsupported } from '../../../core/schema/features.ts';
import { changedField } from '../../../core/schema/field-changes.ts';
import { collectionOf, fieldOf } from '../../../core/schema/lookup.ts';
import type { Collection, SchemaModel } from '../../../core/schema/model.ts';
import { checkNameFits } from '../../../core/schema/names.ts';
import type { AddField, DropField, ModifyField, Operation, RenameField } from '../../../core/schema/operation.ts';
import { createCollection } from './create.ts';
import { checkField, withNotes } from './field-text.ts';
import { createIndex } from './index-text.ts';
import { keyColumns, keyOf } from './key.ts';
import { ENGINE, NAME, nameRules, quote } from './names.ts';
import { narrows } from './narrow.ts';
import { raw } from './raw.ts';
import { refuses } from './refuses.ts';
import { type Registered, registered } from './registry.ts';
import { type Copy, statement } from './statement.ts';
import { columnType } from './types.ts';

/** The statements of an operation on the model before it. Throws what the engine cannot do. */
export function compile(operation: Operation, before: SchemaModel): readonly Statement[] {
  if (operation.type === 'raw') return operation.dialect === NAME ? raw(operation) : [];
  refuseUnsupported(ENGINE, refuses, operation, before);
  switch (operation.type) {
    case 'createCollection':
      return createCollection(operation, before);
    case 'dropCollection': {
      const { collection: table } = operation;
      const cql = `DROP TABLE ${quote(table)}`;
      const told = registered(collectionOf(before, table));
      return [
        statement(cql, { kind: 'ddl', cql, table, effect: { table: false }, registered: told }, { destructive: true }),
      ];
    }
    case 'addField':
      return addField(operation, before);
    case 'dropField':
      return dropField(operation, before);
    case 'renameField':
      return renameField(operation, before);
    case 'modifyField':
      return modifyField(operation, before);
    case 'createIndex':
      return createIndex(operation, before);
    case 'dropIndex': {
      const cql = `DROP INDEX ${quote(operation.index)}`;
      const effect = { index: operation.index, target: null };
      return [statement(cql, { kind: 'ddl', cql, table: operation.collection, effect })];
    }
    case 'renameCollection':
    case 'addConstraint':
    case 'dropConstraint':
      // Refused above: no model has what this one would drop.
      throw new SvcError('not_supported', `${ENGINE} cannot carry out ${operation.type}.`, {
        why: 'It has nothing of the kind.',
      });
  }
}

function addField(operation: AddField, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, collection.name);
  checkField(field, collection.name);
  const next = collectionOf(apply(before, operation), collection.name);
  const cql = `ALTER TABLE ${quote(collection.name)} ADD ${quote(name)} ${columnType(field)}`;
  const fills = field.default !== undefined || field.autoGenerate === true;
  const added = statement(
    withNotes(cql, [field]),
    {
      kind: 'ddl',
      cql,
      table: collection.name,
      effect: { columns: { [name]: columnType(field) } },
      registered: registered(next),
      ...(fills && { resumes: true }),
      ...(field.required && !fills && { empty: true }),
    },
    fills ? { idempotent: true } : {},
  );
  if (!fills) return [added];
  const key = keyColumns(keyOf(collection));
  const value = field.autoGenerate ? 'a new UUID for each' : JSON.stringify(field.default);
  return [
    added,
    statement(
      `-- fill "${name}" in the rows of "${collection.name}" that have no value: ${value.replaceAll('\n', ' ')}`,
      { kind: 'fill', table: collection.name, key, field },
      { idempotent: true },
    ),
  ];
}

function dropField(operation: DropField, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  refuseKey(collection, operation.field, 'dropped');
  // For what it refuses.
  apply(before, operation);
  // Until its column is gone the field is what it was.
  return [drop(collection, operation.field, registered(collection))];
}

function drop({ name: table }: Collection, field: string, both: Registered, copied?: Copy): Statement {
  const cql = `ALTER TABLE ${quote(table)} DROP ${quote(field)}`;
  return statement(
    cql,
    { kind: 'ddl', cql, table, effect: { columns: { [field]: null } }, registered: both, ...(copied && { copied }) },
    { destructive: true },
  );
}

function refuseKey(collection: Collection, field: string, done: 'dropped' | 'changed'): void {
  if (!keyColumns(keyOf(collection)).includes(field)) return;
  throw new SvcError('not_supported', `"${collection.name}.${field}" is part of the key: it cannot be ${done}.`, {
    why: 'The key of a table stands for its life.',
    next: ['Create a table with the new key, move the rows, and drop the old one.'],
  });
}

function renameField(operation: RenameField, before: SchemaModel): Statement[] {
  const { from, to } = operation;
  const collection = collectionOf(before, operation.collection);
  const table = collection.name;
  const field = fieldOf(collection, from);
  checkNameFits(ENGINE, nameRules, to, 'field');
  const after = collectionOf(apply(before, operation), table);
  const next = fieldOf(after, to);
  checkField(next, table);
  const both: Registered = {
    fields: [...collection.fields.values()].flatMap((one) =>
      one.name === from ? [one, { ...next, replaces: from }] : [one],
    ),
    options: isDeepStrictEqual(collection.options, after.options)
      ? [after.options]
      : [after.options, collection.options],
  };
  const key = keyColumns(keyOf(collection));
  if (key.includes(from)) {
    if (!isDeepStrictEqual({ ...next, name: from }, field)) refuseKey(collection, from, 'changed');
    const cql = `ALTER TABLE ${quote(table)} RENAME ${quote(from)} TO ${quote(to)}`;
    const effect = { columns: { [from]: null, [to]: columnType(field) } };
    return [statement(cql, { kind: 'ddl', cql, table, effect, registered: both })];
  }
  const type = columnType(next);
  const cql = `ALTER TABLE ${quote(table)} ADD ${quote(to)} ${type}`;
  const converted = operation.changes ? { converted: { from: field, to: next } } : {};
  const copy: Copy = { kind: 'copy', table, key, from, to, list: field.type === 'array', ...converted };
  const copied = operation.changes ? `${from}", as ${next.type}, to "${to}` : `${from}" to "${to}`;
  return [
    statement(
      withNotes(cql, operation.changes ? [next] : []),
      {
        kind: 'ddl',
        cql,
        table,
        effect: { columns: { [to]: type } },
        registered: both,
        resumes: true,
        copies: from,
        ...converted,
      },
      { idempotent: true },
    ),
    statement(`-- copy every value of "${table}"."${copied}"`.replaceAll('\n', ' '), copy, { idempotent: true }),
    drop(collection, from, both, copy),
  ];
}

function modifyField(operation: ModifyField, before: SchemaModel): Statement[] {
  const collection = collectionOf(before, operation.collection);
  const from = fieldOf(collection, operation.field);
  const to = changedField(from, operation.changes, collection.name);
  const narrowed = narrows(from, to) ? { narrowed: to } : {};
  const next = collectionOf(apply(before, operation), collection.name);
  return [
    statement(
      `-- registry: "${collection.name}"."${to.name}" ${JSON.stringify(operation.changes)}`.replaceAll('\n', ' '),
      { kind: 'note', table: collection.name, registered: registered(next), ...narrowed },
      { idempotent: true },
    ),
  ];
}
