import type { ObjectRules, Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { type DatabaseObject, objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectOperation, ReplaceObject } from '../../../../core/schema/operation.ts';
import { assertCreates, type ObjectName, orReplace } from '../../sql/objects.ts';
import { quoteIdentifier } from './names.ts';
import { type CassandraStatement, type CassandraStep, statementFor } from './step.ts';
import { quoteLiteral } from './table-properties.ts';
import { nameOf, type Token, tokenize } from './tokens.ts';
import { isTypeExtended, typeFields } from './user-type.ts';

/** The kinds, and where the catalog has them. */
const KINDS: Readonly<Record<string, { readonly from: string; readonly column: string }>> = {
  type: { from: 'types', column: 'type_name' },
  function: { from: 'functions', column: 'function_name' },
  aggregate: { from: 'aggregates', column: 'aggregate_name' },
  materialized_view: { from: 'views', column: 'view_name' },
};

export const objects: ObjectRules<CassandraStep> = {
  kinds: Object.keys(KINDS),
  file: { extension: '.cql', end: ';' },
  beforeTables: new Set(['type']),
  // No column of a table with a view can be dropped. A renamed key column is renamed in its views.
  isInTheWay: (kind, change) => kind === 'materialized_view' && change === 'drop',
  referredName: ({ kind, name }) => (kind === 'materialized_view' ? undefined : memberName({ kind, name })),
  boundText,
  isReplacedInPlace: ({ kind, definition }, after) =>
    kind === 'type' || (kind !== 'materialized_view' && signatureText(definition) === signatureText(after.definition)),
  compile,
};

/** A view reads every field of its table: the server drops none while there is a view. */
function boundText({ kind, definition }: DatabaseObject): string {
  if (kind === 'materialized_view') return `${definition} *`;
  return kind === 'function' ? (definition.split(/\blanguage\b/i)[0] ?? '') : definition;
}

function compile(operation: ObjectOperation): readonly CassandraStatement[] {
  if (operation.type === 'dropObject') return [dropStatement(operation, operation.was)];
  assertCreatesObject(operation, operation.definition);
  if (operation.type === 'createObject') return [createStatement(operation, operation.definition)];
  if (operation.kind === 'type') return alterType(operation);
  const { definition, was } = operation;
  if (operation.kind !== 'materialized_view' && signatureText(definition) === signatureText(was))
    return [objectStatement(orReplace(definition), { idempotent: true })];
  return [dropStatement(operation, was), createStatement(operation, definition)];
}

const objectStatement = (cql: string, facts: Partial<Pick<Statement, 'check' | 'idempotent'>>): CassandraStatement =>
  statementFor(cql, { kind: 'ddl', cql, table: '', effect: { unknown: true } }, facts);

const createStatement = (object: ObjectName, definition: string): CassandraStatement =>
  objectStatement(definition, { check: existsQuery(object) });

function dropStatement(object: ObjectName, definition: string): CassandraStatement {
  const name = quoteIdentifier(memberName(object));
  const words = object.kind.replaceAll('_', ' ').toUpperCase();
  const parameters = hasParameters(object) ? ` (${parametersOf(definition).join(', ')})` : '';
  return objectStatement(`DROP ${words} IF EXISTS ${name}${parameters}`, { idempotent: true });
}

const hasParameters = ({ kind }: Pick<ObjectName, 'kind'>): boolean => kind === 'function' || kind === 'aggregate';

/** A query that returns a row if the object exists. `:keyspace` is the keyspace of the connection. */
function existsQuery(object: ObjectName, condition = ''): string {
  const { from = '', column = '' } = KINDS[object.kind] ?? {};
  const [, types] = /\((.*)\)$/s.exec(object.name) ?? [];
  const parameters =
    types === undefined || !hasParameters(object)
      ? ''
      : ` AND argument_types = [${types === '' ? '' : splitTypes(types).map(quoteLiteral).join(', ')}]`;
  return `SELECT ${column} FROM system_schema.${from} WHERE keyspace_name = :keyspace AND ${column} = ${quoteLiteral(memberName(object))}${parameters}${condition}`;
}

/** The name without the types that distinguish a function from others of its name. */
const memberName = ({ name }: ObjectName): string => name.replace(/\(.*\)$/s, '');

/** Only new fields and new names: the server cannot take a field from a type. */
function alterType(operation: ReplaceObject): readonly CassandraStatement[] {
  const [before, after] = [typeFields(operation.was), typeFields(operation.definition)];
  const type = quoteIdentifier(operation.name);
  const hasField = (field: string) =>
    existsQuery(operation, ` AND field_names CONTAINS ${quoteLiteral(field)} ALLOW FILTERING`);
  if (isTypeExtended(before, after)) {
    const steps = after.flatMap(({ name }, at) => {
      const old = before[at]?.name;
      return old === undefined || old === name ? [] : [{ from: old, to: name }];
    });
    return [
      ...steps.map(({ from, to }) =>
        objectStatement(`ALTER TYPE ${type} RENAME ${quoteIdentifier(from)} TO ${quoteIdentifier(to)}`, {
          check: hasField(to),
        }),
      ),
      ...after
        .slice(before.length)
        .map(({ name, type: added }) =>
          objectStatement(`ALTER TYPE ${type} ADD ${quoteIdentifier(name)} ${added}`, { check: hasField(name) }),
        ),
    ];
  }
  throw new SvcError('not_supported', `Cassandra cannot change the type "${operation.name}" in that way.`, {
    why: 'Fields can be added at the end and renamed. They cannot be removed, moved or given another type.',
    state: 'Nothing was changed.',
    next: ['Create a type with another name, and a field of it, and drop the old ones.'],
  });
}

/** Throws `migration_invalid` if the text does not create the object, or is more than one statement. */
function assertCreatesObject(object: ObjectName, definition: string): void {
  const tokens = tokenize(definition);
  const open = tokens.find(({ kind }) => kind === 'open');
  if (open || tokens.some(({ text }) => text === ';'))
    throw new SvcError('migration_invalid', `The definition of "${objectKey(object)}" is not one statement.`, {
      why: open ? `It has an unclosed ${open.text}.` : 'It has several.',
    });
  const words = tokens.map(({ kind, text }) => (kind === 'word' ? text.toLowerCase() : text));
  const start = nameAt(words, object.kind);
  const word = object.kind.replaceAll('_', ' ').toUpperCase();
  assertCreates(object, {
    // A name in capitals is in quotes.
    words,
    start,
    unquote: (one) => (one.startsWith('"') ? one.slice(1, -1).replaceAll('""', '"') : one),
    example: `CREATE ${word} ${memberName(object)} …`,
    expected: { name: memberName(object) },
  });
}

/** The position of the name in `create [or replace] <kind> [if not exists] name`. */
function nameAt(words: readonly string[], kind: string): number | undefined {
  const head = ['create', ...(words[1] === 'or' ? ['or', 'replace'] : []), ...kind.split('_')];
  if (!head.every((word, at) => words[at] === word)) return undefined;
  return words[head.length] === 'if' ? head.length + 3 : head.length;
}

/** The types of the parameters of a function or an aggregate. */
function parametersOf(definition: string): string[] {
  const tokens = tokenize(definition);
  const isFunction = tokens.some(({ text }) => text.toLowerCase() === 'function');
  return listIn(
    tokens,
    tokens.findIndex(({ text }) => text === '('),
  ).map((parameter) => withoutFrozen(joined(isFunction ? parameter.slice(1) : parameter)));
}

/** What must stay for a function to be replaced: its parameters and what it returns. */
function signatureText(definition: string): string {
  const words = canonicalWords(definition);
  const returns = /\breturns (?!null\b)(.*?) language\b/.exec(words)?.[1] ?? /\bstype .*$/.exec(words)?.[0] ?? '';
  return `${parametersOf(definition).join(', ')} ${withoutFrozen(returns)}`;
}

/** The members of the list that begins at the bracket. */
function listIn(tokens: readonly Token[], bracket: number): Token[][] {
  const members: Token[][] = [];
  let depth = 0;
  for (const token of tokens.slice(bracket)) {
    if (token.text === '(' || token.text === '<') depth += 1;
    if (token.text === ')' || token.text === '>') depth -= 1;
    if (depth === 0) break;
    if (depth === 1 && token.text === '(') members.push([]);
    else if (depth === 1 && token.text === ',') members.push([]);
    else members.at(-1)?.push(token);
  }
  return members.filter(({ length }) => length > 0);
}

const joined = (tokens: readonly Token[]): string =>
  tokens
    .map(spelled)
    .join(' ')
    .replace(/ ?([<>]) ?/g, '$1')
    .replaceAll(' ,', ',');

/** The types of parameters are written without it. */
const withoutFrozen = (type: string): string => {
  const inner = /^frozen<(.*)>$/.exec(type)?.[1];
  return inner === undefined ? type : inner;
};

const splitTypes = (types: string): string[] =>
  listIn(tokenize(`(${types})`), 0).map((tokens) => joined(tokens).replaceAll(/,(?=\S)/g, ', '));

/** A name or a keyword without quotes and in small letters, and any string in the same quotes. */
function spelled(token: Token): string {
  const { kind, text } = token;
  if (kind === 'word') return text.toLowerCase() === 'varchar' ? 'text' : text.toLowerCase();
  if (text.startsWith('$$')) return quoteLiteral(text.slice(2, -2));
  const name = text.startsWith('"') ? nameOf(token) : '';
  return /^[a-z]\w*$/.test(name) && name === name.toLowerCase() ? name : text;
}

/** The words of a text in one spelling: those of a view with its fields and properties in one order. */
export function canonicalWords(definition: string): string {
  const words = tokenize(definition).map(spelled);
  const text = words
    .join(' ')
    .replace(/^create or replace /, 'create ')
    .replace(/^(create [a-z]+(?: view)?) if not exists /, '$1 ');
  return words.includes('materialized') ? canonicalView(text) : text;
}

function canonicalView(text: string): string {
  const [, head, selected, rest, key, properties = ''] =
    /^(create materialized view .*? as select) (.*?) (from .*?) (primary key \( .*?)(?: with (.*))?$/s.exec(text) ?? [];
  if (head === undefined || selected === undefined || key === undefined) return text;
  const names = (list: string) => list.split(/[ (),]+/).filter((name) => name !== '');
  const columns = selected === '*' ? ['*'] : [...new Set([...names(selected), ...names(key).slice(2)])].sort();
  const chosen = properties
    .split(/ and (?=[a-z_]+ (?:=|order by))/)
    .filter((one) => one !== '' && !/^clustering order by (?!.* desc)/.test(one))
    .sort();
  return `${head} ${columns.join(', ')} ${rest} ${key} ${chosen.join(' and ')}`.trimEnd();
}

export const isSameDefinition = (a: DatabaseObject, b: DatabaseObject): boolean =>
  canonicalWords(a.definition) === canonicalWords(b.definition);
