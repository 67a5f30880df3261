import { isDeepStrictEqual } from 'node:util';
import { SvcError } from '../../../../core/errors.ts';
import { apply } from '../../../../core/schema/apply.ts';
import { defineField } from '../../../../core/schema/define.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, Field, SchemaModel } from '../../../../core/schema/model.ts';
import { assertNameFits } from '../../../../core/schema/names.ts';
import type {
  AddField,
  DropField,
  ModifyField,
  Operation,
  Raw,
  RenameField,
} from '../../../../core/schema/operation.ts';
import { assertSupported } from '../../../../core/schema/unsupported-features.ts';
import { assertField, createCollection, createIndex, withRegistryComment } from './create.ts';
import { keyColumns, tableKey } from './key.ts';
import { ENGINE, NAME, nameRules, quoteIdentifier } from './names.ts';
import { type CassandraStatement, type CopyStep, type Registered, registeredFields, statementFor } from './step.ts';
import { tokenize } from './tokens.ts';
import { columnDefinition, columnType, isStatic } from './types.ts';
import { unsupported } from './unsupported-features.ts';

export function compile(operation: Operation, before: SchemaModel): readonly CassandraStatement[] {
  if (operation.type === 'raw') return operation.dialect === NAME ? compileRaw(operation) : [];
  assertSupported(ENGINE, unsupported, operation, before);
  switch (operation.type) {
    case 'createCollection':
      return createCollection(operation, before);
    case 'dropCollection': {
      const { collection: table } = operation;
      const cql = `DROP TABLE ${quoteIdentifier(table)}`;
      const registered = registeredFields(collectionOf(before, table));
      return [
        statementFor(cql, { kind: 'ddl', cql, table, effect: { table: false }, registered }, { destructive: true }),
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
      const cql = `DROP INDEX ${quoteIdentifier(operation.index)}`;
      const effect = { index: operation.index, target: null };
      return [statementFor(cql, { kind: 'ddl', cql, table: operation.collection, effect })];
    }
    case 'renameCollection':
    case 'addConstraint':
    case 'dropConstraint':
      // Rejected above: no model has a constraint.
      throw new SvcError('not_supported', `${ENGINE} cannot run ${operation.type}.`, {
        why: `${ENGINE} has no such feature.`,
      });
  }
}

function addField(operation: AddField, before: SchemaModel): CassandraStatement[] {
  const collection = collectionOf(before, operation.collection);
  const { name, ...definition } = operation.field;
  const field = defineField(name, definition, collection.name);
  assertField(field, collection.name);
  const next = collectionOf(apply(before, operation), collection.name);
  const cql = `ALTER TABLE ${quoteIdentifier(collection.name)} ADD ${quoteIdentifier(name)} ${columnDefinition(field)}`;
  const fills = field.default !== undefined || field.autoGenerate === true;
  const added = statementFor(
    withRegistryComment(cql, [field]),
    {
      kind: 'ddl',
      cql,
      table: collection.name,
      effect: { columns: { [name]: columnType(field) } },
      registered: registeredFields(next),
      ...(fills && { resumes: true }),
      ...(field.required && !fills && { empty: true }),
    },
    fills ? { idempotent: true } : {},
  );
  if (!fills) return [added];
  const key = keyColumns(tableKey(collection));
  const value = field.autoGenerate ? 'a new UUID for each' : JSON.stringify(field.default);
  return [
    added,
    statementFor(
      `-- fill "${name}" in the rows of "${collection.name}" without a value: ${value.replaceAll('\n', ' ')}`,
      { kind: 'fill', table: collection.name, key, field },
      { idempotent: true },
    ),
  ];
}

function dropField(operation: DropField, before: SchemaModel): CassandraStatement[] {
  const collection = collectionOf(before, operation.collection);
  assertNotKey(collection, operation.field, 'dropped');
  // Called only for its errors.
  apply(before, operation);
  // The entry stays unchanged until the column is dropped.
  return [dropColumn(collection, operation.field, registeredFields(collection))];
}

function dropColumn(
  { name: table }: Collection,
  field: string,
  registered: Registered,
  copied?: CopyStep,
): CassandraStatement {
  const cql = `ALTER TABLE ${quoteIdentifier(table)} DROP ${quoteIdentifier(field)}`;
  return statementFor(
    cql,
    { kind: 'ddl', cql, table, effect: { columns: { [field]: null } }, registered, ...(copied && { copied }) },
    { destructive: true },
  );
}

function assertNotKey(collection: Collection, field: string, change: 'dropped' | 'changed'): void {
  if (!keyColumns(tableKey(collection)).includes(field)) return;
  throw new SvcError('not_supported', `The field "${collection.name}.${field}" cannot be ${change}.`, {
    why: 'It is part of the key of the table, which cannot be changed.',
    next: ['Create a table with the new key, copy the rows, and drop the old table.'],
  });
}

function renameField(operation: RenameField, before: SchemaModel): CassandraStatement[] {
  const { from, to } = operation;
  const collection = collectionOf(before, operation.collection);
  const table = collection.name;
  const field = fieldOf(collection, from);
  assertNameFits(ENGINE, nameRules, to, 'field');
  const after = collectionOf(apply(before, operation), table);
  const next = fieldOf(after, to);
  assertField(next, table);
  const registered: Registered = {
    fields: [...collection.fields.values()].flatMap((one) =>
      one.name === from ? [one, { ...next, replaces: from }] : [one],
    ),
    options: isDeepStrictEqual(collection.options, after.options)
      ? [after.options]
      : [after.options, collection.options],
  };
  const key = keyColumns(tableKey(collection));
  if (key.includes(from)) {
    if (!isDeepStrictEqual({ ...next, name: from }, field)) assertNotKey(collection, from, 'changed');
    const cql = `ALTER TABLE ${quoteIdentifier(table)} RENAME ${quoteIdentifier(from)} TO ${quoteIdentifier(to)}`;
    const effect = { columns: { [from]: null, [to]: columnType(field) } };
    return [statementFor(cql, { kind: 'ddl', cql, table, effect, registered })];
  }
  assertCopiedAs(field, next, operation);
  const type = columnType(next);
  const cql = `ALTER TABLE ${quoteIdentifier(table)} ADD ${quoteIdentifier(to)} ${columnDefinition(next)}`;
  const converted = operation.changes ? { converted: { from: field, to: next } } : {};
  const copy: CopyStep = { kind: 'copy', table, key, from, to, list: field.type === 'array', ...converted };
  const copied = operation.changes ? `${from}", as ${next.type}, to "${to}` : `${from}" to "${to}`;
  return [
    statementFor(
      withRegistryComment(cql, operation.changes ? [next] : []),
      {
        kind: 'ddl',
        cql,
        table,
        effect: { columns: { [to]: type } },
        registered,
        resumes: true,
        copies: from,
        ...converted,
      },
      { idempotent: true },
    ),
    statementFor(`-- copy every value of "${table}"."${copied}"`.replaceAll('\n', ' '), copy, { idempotent: true }),
    dropColumn(collection, from, registered, copy),
  ];
}

function modifyField(operation: ModifyField, before: SchemaModel): CassandraStatement[] {
  const collection = collectionOf(before, operation.collection);
  const from = fieldOf(collection, operation.field);
  const to = applyFieldChanges(from, operation.changes, collection.name);
  assertSameColumn(from, to, collection.name);
  const narrowed = isNarrower(from, to) ? { narrowed: to } : {};
  const next = collectionOf(apply(before, operation), collection.name);
  return [
    statementFor(
      `-- registry: "${collection.name}"."${to.name}" ${JSON.stringify(operation.changes)}`.replaceAll('\n', ' '),
      { kind: 'register', table: collection.name, registered: registeredFields(next), ...narrowed },
      { idempotent: true },
    ),
  ];
}

/** A native type is part of the type of a column, which cannot be changed. */
function assertSameColumn(from: Field, to: Field, table: string): void {
  assertField(to, table);
  if (columnType(from) === columnType(to) && isStatic(from) === isStatic(to)) return;
  throw new SvcError('not_supported', `${ENGINE} cannot change the type of a field: "${table}.${to.name}".`, {
    why: `It is ${columnDefinition(from)} and would be ${columnDefinition(to)}. ${unsupported.changeType?.why}`,
    state: 'Nothing was changed.',
    next: ['Add a field with another name and the new type, let your application write to both, and drop the old one.'],
  });
}

/** Values are copied only between columns of the types that svc has. */
function assertCopiedAs(from: Field, to: Field, { collection, from: name }: RenameField): void {
  const native = [from, to].find((field) => field.native !== undefined);
  if (!native) return;
  throw new SvcError('not_supported', `${ENGINE} cannot copy the values of "${collection}.${name}".`, {
    why: `The field "${native.name}" has a type in the language of the engine: ${native.native}`,
    state: 'Nothing was changed.',
    next: ['Keep its name, or add a field, let your application write to both, and drop the old one.'],
  });
}

/** Whether existing values may become invalid. */
function isNarrower(from: Field, to: Field): boolean {
  if (to.required && !from.required) return true;
  if (to.length !== undefined && (from.length === undefined || to.length < from.length)) return true;
  if (to.precision !== undefined && (from.precision !== to.precision || from.scale !== to.scale)) return true;
  if (to.enumValues === undefined) return false;
  return from.enumValues === undefined || from.enumValues.some((value) => !to.enumValues?.includes(value));
}

/** One CQL statement, or none if the text is empty. Throws `migration_invalid`. */
function compileRaw({ statement: text, check }: Raw): CassandraStatement[] {
  const words = assertOneStatement(text);
  if (check !== undefined) assertOneStatement(check);
  if (words.length === 0) return [];
  if (words[0] === 'use') {
    throw invalidRaw('It contains USE, which would switch the keyspace of all later statements.', [
      'Prefix the name of the table with the keyspace instead.',
    ]);
  }
  return [
    statementFor(
      text,
      { kind: 'raw', cql: withNewline(text) },
      check === undefined ? {} : { check: withNewline(check) },
    ),
  ];
}

/** To Cassandra a comment ends with its line. */
const withNewline = (text: string): string => (/(?:--|\/\/)[^\n]*$/.test(text) ? `${text}\n` : text);

/** Returns the words of the statement in lower case. */
function assertOneStatement(text: string): string[] {
  const words: string[] = [];
  let ended = false;
  let batch = false;
  for (const { kind, text: token } of tokenize(text)) {
    if (kind === 'open') throw invalidRaw(`It has an unclosed ${token}.`, ['Close it.']);
    if (token === ';') {
      ended = !batch && words.length > 0;
      continue;
    }
    if (ended)
      throw invalidRaw('It has more than one statement; Cassandra accepts one at a time.', [
        'Use a separate raw statement for each.',
      ]);
    words.push(kind === 'word' ? token.toLowerCase() : token);
    // A batch is one statement.
    batch = words[0] === 'begin' && !(words.at(-2) === 'apply' && words.at(-1) === 'batch');
  }
  return words;
}

function invalidRaw(why: string, next: readonly string[]): SvcError {
  return new SvcError('migration_invalid', 'The raw statement is not valid.', { why, next });
}
