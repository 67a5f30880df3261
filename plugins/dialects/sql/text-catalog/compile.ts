import type { Statement } from '../../../../core/dialect.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import {
  type Collection,
  type Field,
  type FieldType,
  type SchemaModel,
  type SerializedCollection,
  serializeCollection,
} from '../../../../core/schema/model.ts';
import type { ModifyField, Operation, Raw, RenameField } from '../../../../core/schema/operation.ts';
import { TEXT_TYPES } from '../../shared/text-types.ts';
import type { StatementFacts } from '../grammar.ts';
import { isLossyCast } from '../lossy-casts.ts';
import { applyValidated, type ValidationRules } from '../validate.ts';
import {
  columnSql,
  createIndexSql,
  createTableSql,
  defaultExpression,
  normalizeCollection,
  quoteIdentifier,
  quoteLiteral,
  type TextCatalogSyntax,
  typeText,
} from './syntax.ts';

/** The `run` of a statement compiled by `compileTextCatalog`. */
export interface TextCatalogStep {
  readonly texts: readonly string[];
  /** Queries that must return no rows before `texts` run. The column `why` of a row explains the violation. */
  readonly mustBeEmptyBefore?: readonly string[];
  /** The same after they have run. */
  readonly mustBeEmpty: readonly string[];
  /** A table that others may reference is dropped and recreated. */
  readonly rebuilds: boolean;
  /** The table that is recreated. What svc did not create on it is created again. */
  readonly recreated?: string;
  /** The fields of that table before the statement. Values of any other would be lost. */
  readonly knownFields?: readonly string[];
  /** What becomes of the stored definitions, for an engine that rewrites texts. */
  readonly definitions?: readonly DefinitionChange[];
}

interface DefinitionChange {
  /** The table before the statement. */
  readonly table: string;
  /** Absent if the table is dropped. */
  readonly definition?: SerializedCollection;
}

export type TextCatalogStatement = Statement<TextCatalogStep>;

/**
 * The statements of an operation for an engine whose ALTER TABLE can only rename and add plain columns. For any other
 * change, the table is recreated, filled and swapped in, all in one transaction.
 */
export function compileTextCatalog(
  syntax: TextCatalogSyntax,
  rules: ValidationRules,
  operation: Operation,
  before: SchemaModel,
): readonly TextCatalogStatement[] {
  if (operation.type === 'raw') {
    const { dialect, statement, check } = operation;
    return dialect === rules.name ? [statementOf([statement], check === undefined ? {} : { check })] : [];
  }
  const after = applyValidated(rules, operation, before);
  const statements = compileChange(syntax, operation, before, after);
  const last = statements.at(-1);
  if (!syntax.rewritesTexts || last === undefined) return statements;
  const definitions = definitionChanges(syntax, operation, before, after);
  return [...statements.slice(0, -1), { ...last, run: { ...last.run, definitions } }];
}

function definitionChanges(
  syntax: TextCatalogSyntax,
  operation: Operation,
  before: SchemaModel,
  after: SchemaModel,
): readonly DefinitionChange[] {
  const nameBefore = (name: string) =>
    operation.type === 'renameCollection' && operation.to === name ? operation.collection : name;
  const dropped = operation.type === 'dropCollection' ? [{ table: operation.collection }] : [];
  const changed = [...after.values()].filter((collection) => before.get(collection.name) !== collection);
  return [
    ...dropped,
    ...changed.map((collection) => ({
      table: nameBefore(collection.name),
      definition: serializeCollection(normalizeCollection(syntax, collection)),
    })),
  ];
}

function compileChange(
  syntax: TextCatalogSyntax,
  operation: Exclude<Operation, Raw>,
  before: SchemaModel,
  after: SchemaModel,
): readonly TextCatalogStatement[] {
  switch (operation.type) {
    case 'createCollection': {
      const create = createTableSql(syntax, collectionOf(after, operation.name));
      const ifNotExists = operation.options?.sqlOptions?.ifNotExists === true;
      return [statementOf([ifNotExists ? create.replace('CREATE TABLE', 'CREATE TABLE IF NOT EXISTS') : create])];
    }
    case 'dropCollection': {
      const drop = [`DROP TABLE ${quoteIdentifier(operation.collection)}`];
      return [...rebuildChanged(syntax, before, after), statementOf(drop, { destructive: true }, { rebuilds: true })];
    }
    case 'renameCollection': {
      const { collection, to } = operation;
      return [alterTable(syntax, collectionOf(before, collection), `RENAME TO ${quoteIdentifier(to)}`, after.get(to))];
    }
    case 'renameField': {
      if (syntax.alterRenamesTableOnly) return rebuildChanged(syntax, before, after, {}, operation);
      const [from, to] = [quoteIdentifier(operation.from), quoteIdentifier(operation.to)];
      const collection = collectionOf(before, operation.collection);
      return [alterTable(syntax, collection, `RENAME COLUMN ${from} TO ${to}`, after.get(collection.name))];
    }
    case 'addField': {
      const field = fieldOf(collectionOf(after, operation.collection), operation.field.name);
      const isPlain =
        !syntax.alterRenamesTableOnly &&
        !field.primaryKey &&
        !field.unique &&
        !field.required &&
        defaultExpression(syntax, field) === undefined;
      if (!isPlain) return rebuildChanged(syntax, before, after);
      return [alterTable(syntax, collectionOf(before, operation.collection), `ADD COLUMN ${columnSql(syntax, field)}`)];
    }
    case 'createIndex': {
      const index = collectionOf(after, operation.collection).indexes.get(operation.index);
      return index ? [statementOf([createIndexSql(operation.collection, index)])] : [];
    }
    case 'dropIndex':
      return [statementOf([dropIndexSql(operation.index)])];
    case 'dropField':
      return rebuildChanged(syntax, before, after, { destructive: true });
    case 'modifyField':
      return rebuildChanged(syntax, before, after, { destructive: isLossyModify(operation, before) });
    case 'addConstraint':
    case 'dropConstraint':
      return rebuildChanged(syntax, before, after);
  }
}

/** `after` is the table after the change, if its name or those of its fields change. */
function alterTable(
  { alterDropsIndexes }: TextCatalogSyntax,
  before: Collection,
  change: string,
  after = before,
): TextCatalogStatement {
  const alter = `ALTER TABLE ${quoteIdentifier(before.name)} ${change}`;
  if (!alterDropsIndexes) return statementOf([alter]);
  return statementOf([
    ...[...before.indexes.keys()].map(dropIndexSql),
    alter,
    ...[...after.indexes.values()].map((index) => createIndexSql(after.name, index)),
  ]);
}

const dropIndexSql = (name: string): string => `DROP INDEX ${quoteIdentifier(name)}`;

function statementOf(
  texts: readonly string[],
  facts: StatementFacts = {},
  more: Partial<TextCatalogStep> = {},
): TextCatalogStatement {
  const run = { texts, mustBeEmpty: [], rebuilds: false, ...more };
  return { text: texts.join(';\n'), run, transactional: true, destructive: false, ...facts };
}

function isLossyModify({ collection, field, changes }: ModifyField, before: SchemaModel): boolean {
  const from = fieldOf(collectionOf(before, collection), field);
  return isLossyCast(from, applyFieldChanges(from, changes, collection));
}

const REBUILD_TABLE = '_svc_rebuilt';

/** Rebuilds every table that an operation changes. `renamed` is the field whose values go to another name. */
function rebuildChanged(
  syntax: TextCatalogSyntax,
  before: SchemaModel,
  after: SchemaModel,
  facts: StatementFacts = {},
  renamed?: RenameField,
): readonly TextCatalogStatement[] {
  return [...after.values()].flatMap((to) => {
    const from = before.get(to.name);
    if (from === undefined || from === to) return [];
    const source = (name: string) => (renamed?.collection === to.name && renamed.to === name ? renamed.from : name);
    return [rebuild(syntax, from, to, facts, source)];
  });
}

function rebuild(
  syntax: TextCatalogSyntax,
  from: Collection,
  to: Collection,
  facts: StatementFacts,
  source: (field: string) => string,
): TextCatalogStatement {
  const copied = [...to.fields.keys()].filter((name) => from.fields.has(source(name)));
  const list = (names: readonly string[]) => names.map(quoteIdentifier).join(', ');
  const invalidValues = [...to.fields.values()].flatMap(({ name, type }) => {
    const condition =
      from.fields.get(source(name))?.type === type
        ? undefined
        : syntax.invalidValueCondition?.(quoteIdentifier(name), type);
    const why = quoteLiteral(`A value of "${name}" is not a valid ${type}.`);
    return condition === undefined
      ? []
      : [`SELECT ${why} AS why FROM ${quoteIdentifier(to.name)} WHERE ${condition} LIMIT 1`];
  });
  const alteredValues = [...to.fields.values()].flatMap((field) => {
    const old = from.fields.get(source(field.name));
    return old ? alteredValuesQuery(syntax, from.name, old, field) : [];
  });
  const texts = [
    createTableSql(syntax, to, REBUILD_TABLE),
    ...(copied.length === 0
      ? []
      : [
          `INSERT INTO ${quoteIdentifier(REBUILD_TABLE)} (${list(copied)}) SELECT ${list(copied.map(source))} FROM ${quoteIdentifier(from.name)}`,
        ]),
    `DROP TABLE ${quoteIdentifier(from.name)}`,
    `ALTER TABLE ${quoteIdentifier(REBUILD_TABLE)} RENAME TO ${quoteIdentifier(to.name)}`,
    ...[...to.indexes.values()].map((index) => createIndexSql(to.name, index)),
  ];
  return statementOf(texts, facts, {
    mustBeEmpty: [...(syntax.danglingReferences ? [syntax.danglingReferences(to.name)] : []), ...invalidValues],
    ...(alteredValues.length > 0 && { mustBeEmptyBefore: alteredValues }),
    rebuilds: true,
    recreated: to.name,
    knownFields: [...from.fields.keys()],
  });
}

/** Types whose values have one text each: 00501 would come back as 501. */
export const ONE_TEXT_TYPES: ReadonlySet<FieldType> = new Set(['smallint', 'integer', 'bigint', 'boolean', 'uuid']);

/** A query for the texts that would be others if they were converted back. */
function alteredValuesQuery(syntax: TextCatalogSyntax, table: string, from: Field, to: Field): readonly string[] {
  if (!TEXT_TYPES.has(from.type) || !ONE_TEXT_TYPES.has(to.type)) return [];
  const column = quoteIdentifier(from.name);
  const text = typeText(syntax, { type: 'string' });
  const altered = `CAST(CAST(${column} AS ${typeText(syntax, to)}) AS ${text}) <> CAST(${column} AS ${text})`;
  const why = `Values of "${from.name}" would change as ${to.type}, such as leading zeros. Rows of "${table}" with such a value: `;
  return [
    `SELECT ${quoteLiteral(why)} || svc_count AS why FROM (SELECT count(*) AS svc_count FROM ${quoteIdentifier(table)} WHERE ${altered}) AS svc_rows WHERE svc_count > 0`,
  ];
}
