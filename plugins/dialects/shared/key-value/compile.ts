import { isDeepStrictEqual } from 'node:util';
import type { Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import { normalizeLiteral } from '../../../../core/schema/literal.ts';
import { type SchemaModel, type SerializedCollection, serializeCollection } from '../../../../core/schema/model.ts';
import type { Operation } from '../../../../core/schema/operation.ts';
import { applyValidated, type ValidationRules } from '../../sql/validate.ts';
import { type TextRow, textValue } from './text-rows.ts';

/** What a statement does, as stored in the journal. All except `create` and `raw` may run again. */
export type KeyValueStep =
  | { readonly kind: 'create'; readonly definition: SerializedCollection; readonly ifNotExists: boolean }
  /** Writes the definition of a table, or removes it; `former` is its name before. */
  | {
      readonly kind: 'define';
      readonly table: string;
      readonly definition?: SerializedCollection;
      readonly former?: string;
    }
  | { readonly kind: 'rows'; readonly definition: SerializedCollection; readonly change: RowChange }
  | { readonly kind: 'raw'; readonly statement: string };

export type RowChange =
  | { readonly kind: 'fill'; readonly field: string }
  | { readonly kind: 'unset'; readonly field: string }
  | { readonly kind: 'move'; readonly from: string; readonly to: string; readonly checkOnly?: true }
  | { readonly kind: 'moveTable'; readonly to: string }
  /** Fails if a value is too long or not one of the enum values. */
  | { readonly kind: 'fit'; readonly field: string }
  /** Fails if the table has a row. */
  | { readonly kind: 'expectNone' }
  | { readonly kind: 'remove' };

/** Compiles an operation for an engine whose tables are a definition and rows with a common beginning of their key. */
export function compileKeyValue(
  rules: ValidationRules,
  operation: Operation,
  before: SchemaModel,
): readonly Statement<KeyValueStep>[] {
  if (operation.type === 'raw') return operation.dialect === rules.name ? [rawStatement(operation)] : [];
  const after = applyValidated(rules, operation, before);
  if (operation.type === 'createCollection') {
    const definition = serializeCollection(collectionOf(after, operation.name));
    const ifNotExists = operation.options?.sqlOptions?.ifNotExists === true;
    return [statement(`CREATE ${JSON.stringify(definition)}`, { kind: 'create', definition, ifNotExists })];
  }
  const table = operation.collection;
  const from = serializeCollection(collectionOf(before, table));
  const rows = (text: string, change: RowChange, destructive = false) =>
    statement(`EACH ROW OF ${table}: ${text}`, { kind: 'rows', definition: from, change }, destructive);
  if (operation.type === 'dropCollection') {
    return [rows('REMOVE', { kind: 'remove' }, true), statement(`UNDEFINE ${table}`, { kind: 'define', table })];
  }
  if (operation.type === 'renameCollection') {
    const { to } = operation;
    const definition = serializeCollection(collectionOf(after, to));
    const change = { kind: 'expectNone' } as const;
    return [
      statement(`EACH ROW OF ${to}: FAIL`, { kind: 'rows', definition, change }),
      rows(`MOVE TO ${to}`, { kind: 'moveTable', to }),
      statement(`DEFINE ${to} INSTEAD OF ${table}`, { kind: 'define', table: to, definition, former: table }),
    ];
  }
  const definition = serializeCollection(collectionOf(after, table));
  const define = statement(`DEFINE ${table}: ${definedChange(operation, definition)}`, {
    kind: 'define',
    table,
    definition,
  });
  switch (operation.type) {
    case 'addField': {
      const { name } = operation.field;
      const field = fieldOf(collectionOf(after, table), name);
      if (field.default === undefined) return [define];
      const change = { kind: 'fill', field: name } as const;
      const text = `EACH ROW OF ${table}: SET ${name} = ${JSON.stringify(field.default)} IF IT HAS NONE`;
      return [define, statement(text, { kind: 'rows', definition, change })];
    }
    case 'dropField':
      return [define, rows(`REMOVE ${operation.field}`, { kind: 'unset', field: operation.field }, true)];
    case 'renameField': {
      const change = { kind: 'move', from: operation.from, to: operation.to } as const;
      return [
        rows(`FAIL IF IT HAS ${change.from} AND ${change.to}`, { ...change, checkOnly: true }),
        rows(`RENAME ${change.from} TO ${change.to}`, change),
        define,
      ];
    }
    case 'modifyField': {
      const [old, field] = [before, after].map((model) => fieldOf(collectionOf(model, table), operation.field));
      if (isDeepStrictEqual([old?.length, old?.enumValues], [field?.length, field?.enumValues])) return [define];
      const change = { kind: 'fit', field: operation.field } as const;
      const text = `EACH ROW OF ${table}: FAIL IF ${operation.field} DOES NOT FIT`;
      return [statement(text, { kind: 'rows', definition, change }), define];
    }
    case 'createIndex':
    case 'dropIndex':
    case 'addConstraint':
    case 'dropConstraint':
      return [define];
  }
}

type ChangeOfTable = Exclude<
  Operation,
  { readonly type: 'createCollection' | 'dropCollection' | 'renameCollection' | 'raw' }
>;

/** What an operation changes in the definition of a table, for people. */
function definedChange(operation: ChangeOfTable, { fields, indexes, constraints }: SerializedCollection): string {
  const text = (list: readonly { readonly name: string }[], name: string | undefined) =>
    JSON.stringify(list.find((one) => one.name === name));
  switch (operation.type) {
    case 'addField':
      return `ADD FIELD ${text(fields, operation.field.name)}`;
    case 'dropField':
      return `DROP FIELD ${operation.field}`;
    case 'renameField':
      return `RENAME FIELD ${operation.from} TO ${operation.to}`;
    case 'modifyField':
      return `CHANGE FIELD TO ${text(fields, operation.field)}`;
    case 'createIndex':
      return `ADD INDEX ${text(indexes, operation.index)}`;
    case 'dropIndex':
      return `DROP INDEX ${operation.index}`;
    case 'addConstraint':
      return `ADD CONSTRAINT ${text(constraints, operation.constraint.name)}`;
    case 'dropConstraint':
      return `DROP CONSTRAINT ${operation.constraint}`;
  }
}

function statement(text: string, run: KeyValueStep, destructive = false): Statement<KeyValueStep> {
  // A table that exists may be another program's: the catalog shows whether this step created it.
  return { text, run, transactional: false, destructive, ...(run.kind !== 'create' && { idempotent: true }) };
}

function rawStatement({ statement: text, check }: Operation & { type: 'raw' }): Statement<KeyValueStep> {
  const run = { kind: 'raw', statement: text } as const;
  return { text, run, transactional: false, destructive: false, ...(check !== undefined && { check }) };
}

/** The change of one row as new values of its fields. Throws `data_violates`. */
export function changedValues(
  change: RowChange,
  { name, fields }: Pick<SerializedCollection, 'name' | 'fields'>,
  values: TextRow,
  now: Date,
): TextRow {
  switch (change.kind) {
    case 'fill': {
      const field = fields.find((one) => one.name === change.field);
      return (values[change.field] ?? null) === null && field?.default !== undefined
        ? { [change.field]: textValue(field.default, field, now) }
        : {};
    }
    case 'fit': {
      const value = values[change.field] ?? null;
      const field = fields.find((one) => one.name === change.field);
      const result = value !== null && field ? normalizeLiteral(value, field) : {};
      if ('problem' in result)
        throw rowsExistError(name, `A value of "${change.field}" does not fit: ${result.problem}.`);
      return {};
    }
    case 'unset':
      return (values[change.field] ?? null) === null ? {} : { [change.field]: null };
    case 'move': {
      const value = values[change.from] ?? null;
      if (value === null) return {};
      if ((values[change.to] ?? null) !== null)
        throw rowsExistError(name, `A row has "${change.from}" and "${change.to}".`);
      return change.checkOnly ? {} : { [change.from]: null, [change.to]: value };
    }
    default:
      return {};
  }
}

export const rowsExistError = (table: string, why: string): SvcError =>
  new SvcError('data_violates', `Rows of the table "${table}" do not allow the change.`, {
    why,
    next: ['Change or delete those rows, or leave the change out.'],
  });
