import type { Statement } from '../../../../core/dialect.ts';
import { applyFieldChanges } from '../../../../core/schema/define-field.ts';
import { collectionOf, fieldOf } from '../../../../core/schema/find-or-throw.ts';
import type { Collection, SchemaModel } from '../../../../core/schema/model.ts';
import type { ModifyField, Operation } from '../../../../core/schema/operation.ts';
import type { StatementFacts } from '../grammar.ts';
import { isLossyCast } from '../lossy-casts.ts';
import { applyValidated, type ValidationRules } from '../validate.ts';
import {
  columnSql,
  createIndexSql,
  createTableSql,
  defaultExpression,
  quoteIdentifier,
  quoteLiteral,
  type TextCatalogSyntax,
} from './syntax.ts';

/** The `run` of a statement compiled by `compileTextCatalog`. */
export interface TextCatalogStep {
  readonly texts: readonly string[];
  /** Queries that must return no rows after `texts` have run. The column `why` of a row explains the violation. */
  readonly mustBeEmpty: readonly string[];
  /** A table that others may reference is dropped and recreated. */
  readonly rebuilds: boolean;
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
    case 'renameCollection':
      return [
        statementOf([
          `ALTER TABLE ${quoteIdentifier(operation.collection)} RENAME TO ${quoteIdentifier(operation.to)}`,
        ]),
      ];
    case 'renameField': {
      const [from, to] = [quoteIdentifier(operation.from), quoteIdentifier(operation.to)];
      return [statementOf([`ALTER TABLE ${quoteIdentifier(operation.collection)} RENAME COLUMN ${from} TO ${to}`])];
    }
    case 'addField': {
      const field = fieldOf(collectionOf(after, operation.collection), operation.field.name);
      const isPlain =
        !field.primaryKey && !field.unique && !field.required && defaultExpression(syntax, field) === undefined;
      if (!isPlain) return rebuildChanged(syntax, before, after);
      return [
        statementOf([`ALTER TABLE ${quoteIdentifier(operation.collection)} ADD COLUMN ${columnSql(syntax, field)}`]),
      ];
    }
    case 'createIndex': {
      const index = collectionOf(after, operation.collection).indexes.get(operation.index);
      return index ? [statementOf([createIndexSql(operation.collection, index)])] : [];
    }
    case 'dropIndex':
      return [statementOf([`DROP INDEX ${quoteIdentifier(operation.index)}`])];
    case 'dropField':
      return rebuildChanged(syntax, before, after, { destructive: true });
    case 'modifyField':
      return rebuildChanged(syntax, before, after, { destructive: isLossyModify(operation, before) });
    case 'addConstraint':
    case 'dropConstraint':
      return rebuildChanged(syntax, before, after);
  }
}

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

/** Rebuilds every table that an operation changes. */
function rebuildChanged(
  syntax: TextCatalogSyntax,
  before: SchemaModel,
  after: SchemaModel,
  facts: StatementFacts = {},
): readonly TextCatalogStatement[] {
  return [...after.values()].flatMap((to) => {
    const from = before.get(to.name);
    return from === undefined || from === to ? [] : [rebuild(syntax, from, to, facts)];
  });
}

function rebuild(
  syntax: TextCatalogSyntax,
  from: Collection,
  to: Collection,
  facts: StatementFacts,
): TextCatalogStatement {
  const copied = [...to.fields.keys()]
    .filter((name) => from.fields.has(name))
    .map(quoteIdentifier)
    .join(', ');
  const invalidValues = [...to.fields.values()].flatMap(({ name, type }) => {
    const condition =
      from.fields.get(name)?.type === type ? undefined : syntax.invalidValueCondition?.(quoteIdentifier(name), type);
    const why = quoteLiteral(`A value of "${name}" is not a valid ${type}.`);
    return condition === undefined
      ? []
      : [`SELECT ${why} AS why FROM ${quoteIdentifier(to.name)} WHERE ${condition} LIMIT 1`];
  });
  const texts = [
    createTableSql(syntax, to, REBUILD_TABLE),
    ...(copied === ''
      ? []
      : [
          `INSERT INTO ${quoteIdentifier(REBUILD_TABLE)} (${copied}) SELECT ${copied} FROM ${quoteIdentifier(from.name)}`,
        ]),
    `DROP TABLE ${quoteIdentifier(from.name)}`,
    `ALTER TABLE ${quoteIdentifier(REBUILD_TABLE)} RENAME TO ${quoteIdentifier(to.name)}`,
    ...[...to.indexes.values()].map((index) => createIndexSql(to.name, index)),
  ];
  return statementOf(texts, facts, {
    mustBeEmpty: [syntax.danglingReferences(to.name), ...invalidValues],
    rebuilds: true,
  });
}
