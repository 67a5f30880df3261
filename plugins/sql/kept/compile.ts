import type { Statement } from '../../../core/dialect.ts';
import { changedField } from '../../../core/schema/field-changes.ts';
import { collectionOf, fieldOf } from '../../../core/schema/lookup.ts';
import type { Collection, SchemaModel } from '../../../core/schema/model.ts';
import type { ModifyField, Operation } from '../../../core/schema/operation.ts';
import { checked, type Rules } from '../checked.ts';
import { losesSilently } from '../loses.ts';
import { defaultText, type KeptWords, quote, text } from './words.ts';
import { columnText, indexText, tableText } from './write.ts';

/** What a statement of `compileKept` has as `run`. */
export type KeptRun = {
  readonly texts: readonly string[];
  /** Queries that have to give no row once the texts have run; the column `why` of one that comes is a sentence. */
  readonly must: readonly string[];
  /** A table is dropped that others may point at, and put back. */
  readonly rebuilds: boolean;
};

/**
 * The statements of an operation for an engine whose ALTER TABLE can rename, add a plain column and little else: a table
 * that becomes another one is made anew, filled, and put in its place, all in one transaction.
 */
export function compileKept(
  words: KeptWords,
  rules: Rules,
  operation: Operation,
  before: SchemaModel,
): readonly Statement[] {
  if (operation.type === 'raw') {
    const { dialect, statement, check } = operation;
    return dialect === rules.name ? [made([statement], check === undefined ? {} : { check })] : [];
  }
  const after = checked(rules, operation, before);
  switch (operation.type) {
    case 'createCollection': {
      const create = tableText(words, collectionOf(after, operation.name));
      const isKept = operation.options?.sqlOptions?.ifNotExists === true;
      return [made([isKept ? create.replace('CREATE TABLE', 'CREATE TABLE IF NOT EXISTS') : create])];
    }
    case 'dropCollection': {
      const drop = [`DROP TABLE ${quote(operation.collection)}`];
      return [...rebuilt(words, before, after), made(drop, { destructive: true }, { rebuilds: true })];
    }
    case 'renameCollection':
      return [made([`ALTER TABLE ${quote(operation.collection)} RENAME TO ${quote(operation.to)}`])];
    case 'renameField': {
      const [from, to] = [quote(operation.from), quote(operation.to)];
      return [made([`ALTER TABLE ${quote(operation.collection)} RENAME COLUMN ${from} TO ${to}`])];
    }
    case 'addField': {
      const field = fieldOf(collectionOf(after, operation.collection), operation.field.name);
      const isPlain = !field.primaryKey && !field.unique && !field.required && defaultText(words, field) === undefined;
      if (!isPlain) return rebuilt(words, before, after);
      return [made([`ALTER TABLE ${quote(operation.collection)} ADD COLUMN ${columnText(words, field)}`])];
    }
    case 'createIndex': {
      const index = collectionOf(after, operation.collection).indexes.get(operation.index);
      return index ? [made([indexText(operation.collection, index)])] : [];
    }
    case 'dropIndex':
      return [made([`DROP INDEX ${quote(operation.index)}`])];
    case 'dropField':
      return rebuilt(words, before, after, { destructive: true });
    case 'modifyField':
      return rebuilt(words, before, after, { destructive: loses(operation, before) });
    case 'addConstraint':
    case 'dropConstraint':
      return rebuilt(words, before, after);
  }
}

function made(texts: readonly string[], facts: Partial<Statement> = {}, more: Partial<KeptRun> = {}): Statement {
  const run: KeptRun = { texts, must: [], rebuilds: false, ...more };
  return { text: texts.join(';\n'), run, transactional: true, destructive: false, ...facts };
}

function loses({ collection, field, changes }: ModifyField, before: SchemaModel): boolean {
  const from = fieldOf(collectionOf(before, collection), field);
  return losesSilently(from, changedField(from, changes, collection));
}

const REBUILT = '_svc_rebuilt';

/** Every table that an operation makes another one of. */
function rebuilt(
  words: KeptWords,
  before: SchemaModel,
  after: SchemaModel,
  facts: Partial<Statement> = {},
): readonly Statement[] {
  return [...after.values()].flatMap((to) => {
    const from = before.get(to.name);
    return from === undefined || from === to ? [] : [rebuild(words, from, to, facts)];
  });
}

function rebuild(words: KeptWords, from: Collection, to: Collection, facts: Partial<Statement>): Statement {
  const kept = [...to.fields.keys()]
    .filter((name) => from.fields.has(name))
    .map(quote)
    .join(', ');
  const misfits = [...to.fields.values()].flatMap(({ name, type }) => {
    const misfit = from.fields.get(name)?.type === type ? undefined : words.misfit?.(quote(name), type);
    const why = text(`A value of "${name}" is no ${type}.`);
    return misfit === undefined ? [] : [`SELECT ${why} AS why FROM ${quote(to.name)} WHERE ${misfit} LIMIT 1`];
  });
  const texts = [
    tableText(words, to, REBUILT),
    ...(kept === '' ? [] : [`INSERT INTO ${quote(REBUILT)} (${kept}) SELECT ${kept} FROM ${quote(from.name)}`]),
    `DROP TABLE ${quote(from.name)}`,
    `ALTER TABLE ${quote(REBUILT)} RENAME TO ${quote(to.name)}`,
    ...[...to.indexes.values()].map((index) => indexText(to.name, index)),
  ];
  return made(texts, facts, { must: [words.dangling(to.name), ...misfits], rebuilds: true });
}
