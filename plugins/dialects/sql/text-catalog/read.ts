import type { UnsupportedObject } from '../../../../core/dialect.ts';
import { defineConstraint } from '../../../../core/schema/constraint.ts';
import type {
  Collection,
  Constraint,
  Field,
  Index,
  ReferentialAction,
  SchemaModel,
} from '../../../../core/schema/model.ts';
import { leftOut } from '../catalog-values.ts';
import {
  createIndexSql,
  createTableSql,
  readDefault,
  readType,
  type TextCatalogSyntax,
  UNKNOWN_TYPE,
  unquoteIdentifier,
  unquoteLiteral,
} from './syntax.ts';

export interface TextCatalog {
  readonly model: SchemaModel;
  readonly unsupportedObjects: readonly UnsupportedObject[];
}

const TABLE = /^CREATE TABLE ("(?:[^"]|"")*"|[^\s("]+)/i;
const INDEX = /^CREATE (UNIQUE )?INDEX ("(?:[^"]|"")*"|\S+) ON ("(?:[^"]|"")*"|[^\s(]+)\s*\((.*)$/is;
const OTHER_OBJECT = /^CREATE\s+((?:\w+\s+)*?(?:TABLE|INDEX|TRIGGER|VIEW))\s+("(?:[^"]|"")*"|[^\s(]+)/is;

/** What an engine stores in addition to tables and plain indexes, such as triggers and views. */
export function otherObjects(texts: ReadonlyMap<string, readonly string[]>): UnsupportedObject[] {
  return [...texts].flatMap(([table, statements]) => {
    const isTable = statements.some((sql) => TABLE.test(sql));
    return statements
      .filter((sql) => !TABLE.test(sql) && !INDEX.test(sql))
      .map((sql): UnsupportedObject => {
        const [, kind, name = ''] = OTHER_OBJECT.exec(sql) ?? [];
        const what =
          kind === undefined
            ? `has an object of the statement ${sql.slice(0, 80).replace(/\s+/g, ' ')}`
            : `has the ${kind.toLowerCase().replace(/\s+/g, ' ')} "${unquoteIdentifier(name)}"`;
        return isTable
          ? { collection: table, what: `${what}, which svc does not manage; it is kept when svc recreates the table` }
          : { what: `${what}, which svc does not manage` };
      });
  });
}

/** The statements of a table that svc did not write, such as those of triggers and partial indexes. */
export function foreignStatements({ rewritesTexts }: TextCatalogSyntax, texts: readonly string[]): readonly string[] {
  return texts.filter((sql) => {
    if (TABLE.test(sql)) return false;
    const index = readIndex(sql);
    if (!index) return true;
    // The text of an index of svc may differ as well.
    return !rewritesTexts && !isSame(sql, createIndexSql(index.table, index.index));
  });
}

/**
 * Parses the stored CREATE statements of tables and indexes, in any order. Statements not written by svc are parsed as far
 * as possible, and the rest is reported in `unsupportedObjects`.
 */
export function readTextCatalog(syntax: TextCatalogSyntax, texts: readonly string[]): TextCatalog {
  const model = new Map<string, Collection & { readonly indexes: Map<string, Index> }>();
  const unsupportedObjects: UnsupportedObject[] = [];
  const statements = texts.map((text) => text.replace(/;\s*$/, ''));
  const rest = statements.filter((sql) => {
    const [, name] = TABLE.exec(sql) ?? [];
    if (name === undefined) return true;
    const { collection, unknownTypes } = readTable(syntax, unquoteIdentifier(name), sql);
    model.set(collection.name, collection);
    unsupportedObjects.push(...unknownTypes);
    if (!isSame(sql, createTableSql(syntax, collection)))
      unsupportedObjects.push({ collection: collection.name, what: NOT_CREATED_BY_SVC });
    return false;
  });
  for (const sql of rest) {
    const read = readIndex(sql);
    const collection = read && model.get(read.table);
    if (!collection) continue;
    const { index } = read;
    if (isSame(sql, createIndexSql(collection.name, index))) collection.indexes.set(index.name, index);
    else
      unsupportedObjects.push(leftOut(collection.name, 'index', index.name, 'has more than columns and their order'));
  }
  return { model, unsupportedObjects };
}

function readIndex(sql: string): { readonly table: string; readonly index: Index } | undefined {
  const [, unique, name, table, keys = ''] = INDEX.exec(sql) ?? [];
  if (name === undefined || table === undefined) return undefined;
  const columns = [...keys.matchAll(/("(?:[^"]|"")*"|[^\s"(),]+)( DESC)?/gi)].map(([, column = '', down]) => ({
    name: unquoteIdentifier(column),
    ...(down !== undefined && { order: 'desc' as const }),
  }));
  const index: Index = { name: unquoteIdentifier(name), columns, ...(unique !== undefined && { unique: true }) };
  return { table: unquoteIdentifier(table), index };
}

/** The constraints of the tables in CREATE statements that are not part of a column, as the engine writes them. */
export const readConstraintTexts = (texts: readonly string[]): readonly string[] =>
  texts
    .filter((sql) => /^CREATE TABLE /i.test(sql))
    .flatMap((sql) => tableLines(sql).flatMap(({ line, parts }) => (isColumn(parts) ? [] : [line])));

const NOT_CREATED_BY_SVC =
  'was not created by svc, or was changed since: parts of its definition other than fields and named constraints are lost when svc changes it';

const isSame = (one: string, other: string): boolean => one.replace(/[\s"]+/g, '') === other.replace(/[\s"]+/g, '');

/** A string, a quoted name, a comment, a parenthesis, a comma, whitespace, or other text. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*.*?\*\/|[(),]|(?:(?!--|\/\*)[^\s'"(),])+|\s+/gs;

function tokens(sql: string): string[] {
  return [...sql.matchAll(TOKENS)].flatMap(([token]) => (/^(--|\/\*)/.test(token) ? [] : [token]));
}

/** Splits at commas outside parentheses. */
function splitAtCommas(body: string): string[] {
  const found = [''];
  let depth = 0;
  for (const token of tokens(body)) {
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
    if (token === ',' && depth === 0) found.push('');
    else found.push(`${found.pop()}${token}`);
  }
  return found.map((item) => item.trim()).filter((item) => item !== '');
}

/** Splits into syntax, strings and complete parentheses. */
function splitTokens(item: string): string[] {
  const found: string[] = [];
  let depth = 0;
  for (const token of tokens(item)) {
    if (token === ')') depth -= 1;
    if (depth > 0 || token === ')') found.push(`${found.pop()}${token}`);
    else if (token.trim() !== '') found.push(token);
    if (token === '(') depth += 1;
  }
  return found;
}

const insideParentheses = (group = ''): string => group.slice(1, -1).trim();

/** The definitions of columns and constraints in a CREATE TABLE statement. */
function tableLines(sql: string): { readonly line: string; readonly parts: readonly string[] }[] {
  const body = splitTokens(sql).find((part) => part.startsWith('(')) ?? '()';
  return splitAtCommas(insideParentheses(body)).map((line) => ({ line, parts: splitTokens(line) }));
}

const isColumn = ([first = '']: readonly string[]): boolean =>
  !/^(CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN)$/i.test(first);

function readTable(
  syntax: TextCatalogSyntax,
  name: string,
  sql: string,
): {
  readonly collection: Collection & { readonly indexes: Map<string, Index> };
  readonly unknownTypes: readonly UnsupportedObject[];
} {
  const lines = tableLines(sql);
  const columns = lines.filter(({ parts }) => isColumn(parts));
  const names = columns.map(({ parts }) => unquoteIdentifier(parts[0] ?? ''));
  const constraints = lines
    .filter(({ parts }) => !isColumn(parts))
    .flatMap(({ parts: [word = '', own = '', ...rest] }) =>
      /^CONSTRAINT$/i.test(word) ? constraintOf(unquoteIdentifier(own), rest, name, names) : [],
    );
  const key = lines.find(({ parts: [first = ''] }) => /^PRIMARY$/i.test(first));
  const keys = splitAtCommas(insideParentheses(key?.parts[2])).map(unquoteIdentifier);
  const fields = columns.map(({ parts: [own = '', ...rest] }) => fieldOf(syntax, unquoteIdentifier(own), rest, keys));
  const unknownTypes = columns.flatMap(({ parts: [own = '', ...rest] }) => {
    const written = typeOf(rest);
    if (readType(syntax, written)) return [];
    const what =
      written === '' ? 'has no type, and svc reads it as text' : `has the type ${written}, which svc reads as text`;
    return [{ collection: name, field: unquoteIdentifier(own), what }];
  });
  return {
    collection: { name, fields: byName(fields), indexes: new Map(), constraints: byName(constraints), options: {} },
    unknownTypes,
  };
}

const byName = <T extends { readonly name: string }>(list: readonly T[]): Map<string, T> =>
  new Map(list.map((one) => [one.name, one]));

const CLAUSES = /^(NOT|NULL|UNIQUE|CHECK|DEFAULT|PRIMARY|REFERENCES|COLLATE|CONSTRAINT|GENERATED|AS)$/i;

/** The parts of a column after its name, up to the first clause. */
function typeOf(rest: readonly string[]): string {
  const at = rest.findIndex((part) => CLAUSES.test(part));
  return (at < 0 ? rest : rest.slice(0, at)).join(' ');
}

function fieldOf(syntax: TextCatalogSyntax, name: string, rest: readonly string[], keys: readonly string[]): Field {
  const at = rest.findIndex((part) => CLAUSES.test(part));
  const clauses = at < 0 ? [] : rest.slice(at);
  const has = (first: string, second?: string) =>
    clauses.some(
      (part, index) =>
        part.toUpperCase() === first && (second === undefined || clauses[index + 1]?.toUpperCase() === second),
    );
  const after = (word: string) => clauses[clauses.findIndex((part) => part.toUpperCase() === word) + 1];
  const type = readType(syntax, typeOf(rest)) ?? UNKNOWN_TYPE;
  const given = has('DEFAULT') ? after('DEFAULT') : undefined;
  const labels =
    has('CHECK') && type.type === 'enum' ? splitTokens(insideParentheses(after('CHECK'))).at(-1) : undefined;
  const primaryKey = keys.includes(name) || has('PRIMARY', 'KEY');
  return {
    name,
    ...type,
    ...(labels !== undefined && { enumValues: splitAtCommas(insideParentheses(labels)).map(unquoteLiteral) }),
    ...(primaryKey && { primaryKey }),
    ...((primaryKey || has('NOT', 'NULL')) && { required: true }),
    ...(has('UNIQUE') && { unique: true }),
    ...readDefault(syntax, given?.startsWith('(') ? insideParentheses(given) : given, type.type),
  };
}

function constraintOf(
  name: string,
  [kind = '', ...rest]: readonly string[],
  table: string,
  fields: readonly string[],
): Constraint[] {
  const columns = (group: string | undefined) => splitAtCommas(insideParentheses(group)).map(unquoteIdentifier);
  const action = (when: string) => {
    const at = rest.findIndex((part, index) => part.toUpperCase() === when && rest[index - 1]?.toUpperCase() === 'ON');
    return at < 0
      ? undefined
      : (rest
          .slice(at + 1, at + 3)
          .join(' ')
          .toUpperCase()
          .replace(/^(CASCADE|RESTRICT).*/, '$1') as ReferentialAction);
  };
  switch (kind.toUpperCase()) {
    case 'CHECK':
      return [defineConstraint({ name, type: 'check', expression: insideParentheses(rest[0]) }, table, fields)];
    case 'UNIQUE':
      return [{ name, type: 'unique', columns: columns(rest[0]) }];
    case 'PRIMARY':
      return [{ name, type: 'primaryKey', columns: columns(rest[1]) }];
    case 'FOREIGN': {
      const [onDelete, onUpdate] = [action('DELETE'), action('UPDATE')];
      const references = { table: unquoteIdentifier(rest[3] ?? ''), columns: columns(rest[4]) };
      const acting = { ...(onDelete && { onDelete }), ...(onUpdate && { onUpdate }) };
      return [
        defineConstraint(
          { name, type: 'foreignKey', columns: columns(rest[1]), references: { ...references, ...acting } },
          table,
        ),
      ];
    }
    default:
      return [];
  }
}
