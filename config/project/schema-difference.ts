import { isDeepStrictEqual } from 'node:util';
import type { Connection, Dialect, Statement, UnsupportedObject } from '../../core/dialect.ts';
import { describeError, isSvcError } from '../../core/errors.ts';
import { arrangeObjects } from '../../core/migration/arrange-objects.ts';
import { inServerSpelling, withoutUnknownReferences, withUnreadObjects } from '../../core/migration/drift.ts';
import { compileObject, withServerTexts } from '../../core/migration/objects.ts';
import { applyInPlace } from '../../core/schema/apply.ts';
import { isObjectOperation, type ObjectModel, objectKey } from '../../core/schema/database-object.ts';
import { diff } from '../../core/schema/diff.ts';
import type { Collection, SchemaModel } from '../../core/schema/model.ts';
import { MutableSchema } from '../../core/schema/mutable-schema.ts';
import type { MigrationOperation } from '../../core/schema/operation.ts';
import type { Renames } from '../../core/schema/rename/renames.ts';
import { type UndecidedRename, undecidedRenames } from '../../core/schema/rename/undecided.ts';
import { whyUndeclarable } from './declarable-schema.ts';
import { renamesByCopy } from './renames-by-copy.ts';

/** Tables and objects: of a database, of files, or of the history. */
export interface Schema {
  readonly model: SchemaModel;
  readonly objects: ObjectModel;
  /** The connection that it was read from. */
  readonly connection?: Connection;
  /** What a database has that `model` and `objects` do not contain, or only approximately. */
  readonly unsupported?: readonly UnsupportedObject[];
}

export interface Comparison {
  readonly dialect: Dialect;
  readonly from: Schema;
  readonly to: Schema;
  readonly renames: Renames;
}

export interface Change {
  readonly operation: MigrationOperation;
  /** Empty if svc cannot make the change. */
  readonly statements: readonly Statement[];
  /** Why svc cannot make the change. */
  readonly refusal?: string;
}

export interface SchemaDifference {
  readonly changes: readonly Change[];
  /** Differences that no operation describes. */
  readonly unchangeable: readonly string[];
  /** Removals and additions that may be renames. */
  readonly undecided: readonly UndecidedRename[];
}

/** The changes that make one schema into another. Changes nothing. */
export async function schemaDifference(comparison: Comparison): Promise<SchemaDifference> {
  const { dialect, renames } = comparison;
  const { from, to } = await aligned(comparison);
  const unchangeable: string[] = [];
  const target = withPossibleOptions(
    from.model,
    await withCreatableTables(dialect, from, to, unchangeable),
    unchangeable,
  );
  const operations = renamesByCopy(diff(from.model, target, renames), dialect, from.model);
  const all = dialect.objects
    ? arrangeObjects(dialect.objects, operations, { before: from.objects, after: to.objects, tables: from.model })
    : operations;
  const model = new MutableSchema(from.model);
  return {
    changes: all.map((operation) => changeOf(dialect, operation, model)),
    unchangeable,
    undecided: undecidedRenames(from.model, target, renames),
  };
}

/** Compiles an operation and applies it to the model. */
function changeOf(dialect: Dialect, operation: MigrationOperation, model: MutableSchema): Change {
  try {
    const statements = isObjectOperation(operation)
      ? compileObject(dialect, operation)
      : dialect.compile(operation, model);
    return { operation, statements };
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return { operation, statements: [], refusal: describeError(error) };
  } finally {
    if (!isObjectOperation(operation)) applyInPlace(model, operation);
  }
}

/** Both schemas in one spelling, so that what means the same is equal: the server's, if one of them is in a database. */
async function aligned({ from, to }: Comparison): Promise<{ readonly from: Schema; readonly to: Schema }> {
  if (from.connection) {
    const { expected, found } = await inSpellingOf(from.connection, to, from);
    return { from: found, to: expected };
  }
  if (!to.connection) return { from, to };
  const { expected, found } = await inSpellingOf(to.connection, from, to);
  return { from: expected, to: found };
}

async function inSpellingOf(
  connection: Connection,
  expected: Schema,
  found: Schema,
): Promise<{ readonly expected: Schema; readonly found: Schema }> {
  const read = expected.connection
    ? found.model
    : withUnreadObjects(found.model, expected.model, found.unsupported ?? []);
  const spelled = await inServerSpelling(connection, { expected: expected.model, found: read });
  const normal = await withServerTexts(connection, expected.objects, found.objects);
  const objects = new Map(
    [...expected.objects].map(([key, object]) => {
      const current = found.objects.get(key);
      return [key, current && normal.get(objectKey(object))?.definition === current.definition ? current : object];
    }),
  );
  return {
    expected: { ...expected, model: withOriginals(spelled.expected, expected.model, read), objects },
    found: { ...found, model: withOriginals(spelled.found, read, expected.model) },
  };
}

/** What only one side has is created as it was written: its normal form has only what the engine stores. */
function withOriginals(normal: SchemaModel, original: SchemaModel, other: SchemaModel): SchemaModel {
  return new Map(
    [...normal].map(([name, table]) => {
      const [written, counterpart] = [original.get(name), other.get(name)];
      if (!written) return [name, table];
      if (!counterpart) return [name, written];
      const parts = <T>(part: (one: Collection) => ReadonlyMap<string, T>): ReadonlyMap<string, T> =>
        new Map(
          [...part(table)].map(([key, member]) => [
            key,
            part(counterpart).has(key) ? member : (part(written).get(key) ?? member),
          ]),
        );
      return [
        name,
        {
          ...table,
          fields: parts((one) => one.fields),
          indexes: parts((one) => one.indexes),
          constraints: parts((one) => one.constraints),
        },
      ];
    }),
  );
}

/** Without the changes of tables that a database has in a form which svc cannot create. */
async function withCreatableTables(
  dialect: Dialect,
  from: Schema,
  to: Schema,
  unchangeable: string[],
): Promise<SchemaModel> {
  if (!to.connection) return to.model;
  const model = new Map(to.model);
  for (const [name, table] of to.model) {
    const before = from.model.get(name);
    const why = isDeepStrictEqual(before, table) ? undefined : await whyUndeclarable(table, dialect);
    if (why === undefined) continue;
    unchangeable.push(`The table "${name}" differs, and cannot be created: ${why}`);
    if (before) model.set(name, before);
    else model.delete(name);
  }
  return model.size === to.model.size ? model : withoutUnknownReferences(model, model);
}

/** With the options of `from`, where a table cannot get others. */
function withPossibleOptions(from: SchemaModel, to: SchemaModel, unchangeable: string[]): SchemaModel {
  return new Map(
    [...to].map(([name, table]) => {
      const before = from.get(name);
      if (!before || isDeepStrictEqual(before.options, table.options)) return [name, table];
      const [was, becomes] = [before.options, table.options].map((options) => JSON.stringify(options));
      unchangeable.push(`The options of the table "${name}" are ${was} and would become ${becomes}: not possible.`);
      return [name, { ...table, options: before.options }];
    }),
  );
}
