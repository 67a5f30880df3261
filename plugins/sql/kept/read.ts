import type { Unreadable } from '../../../core/dialect.ts';
import { defineConstraint } from '../../../core/schema/constraint.ts';
import type { Action, Collection, Constraint, Field, Index, SchemaModel } from '../../../core/schema/model.ts';
import { type KeptWords, readDefault, readType, stringOf, unquoted } from './words.ts';
import { indexText, tableText } from './write.ts';

export interface Kept {
  readonly model: SchemaModel;
  readonly unreadable: readonly Unreadable[];
}

/**
 * The model of what an engine keeps: the texts of its tables and indexes, in any order. What somebody else wrote is read
 * as far as it says the same; what it says beyond that is told as unreadable.
 */
export function readKept(words: KeptWords, texts: readonly string[]): Kept {
  const model = new Map<string, Collection & { readonly indexes: Map<string, Index> }>();
  const unreadable: Unreadable[] = [];
  const rest = texts.filter((sql) => {
    const [, name] = /^CREATE TABLE ("(?:[^"]|"")*"|[^\s("]+)/i.exec(sql) ?? [];
    if (name === undefined) return true;
    const collection = readTable(words, unquoted(name), sql);
    model.set(collection.name, collection);
    if (!isSame(sql, tableText(words, collection))) unreadable.push({ collection: collection.name, what: FOREIGN });
    return false;
  });
  for (const sql of rest) {
    const [, unique, name, table, keys = ''] =
      /^CREATE (UNIQUE )?INDEX ("(?:[^"]|"")*"|\S+) ON ("(?:[^"]|"")*"|[^\s(]+)\s*\((.*)$/is.exec(sql) ?? [];
    const collection = model.get(unquoted(table ?? ''));
    if (name === undefined || !collection) continue;
    const columns = [...keys.matchAll(/("(?:[^"]|"")*"|[^\s"(),]+)( DESC)?/gi)].map(([, column = '', down]) => ({
      name: unquoted(column),
      ...(down !== undefined && { order: 'desc' as const }),
    }));
    const index: Index = { name: unquoted(name), columns, ...(unique !== undefined && { unique: true }) };
    if (isSame(sql, indexText(collection.name, index))) collection.indexes.set(index.name, index);
    else
      unreadable.push({
        collection: collection.name,
        what: `has the index "${index.name}", which svc does not make: it is more than columns and their order`,
      });
  }
  return { model, unreadable };
}

const FOREIGN =
  'was not made by svc: what its text says beyond fields and named constraints is lost when svc changes it';

const isSame = (one: string, other: string): boolean => one.replace(/[\s"]+/g, '') === other.replace(/[\s"]+/g, '');

/** A text, a name, a comment, a parenthesis, a comma, or words. */
const TOKENS = /'(?:[^']|'')*'|"(?:[^"]|"")*"|--[^\n]*|\/\*.*?\*\/|[(),]|(?:(?!--|\/\*)[^\s'"(),])+|\s+/gs;

function tokens(sql: string): string[] {
  return [...sql.matchAll(TOKENS)].flatMap(([token]) => (/^(--|\/\*)/.test(token) ? [] : [token]));
}

/** A text cut at commas that stand in no parentheses. */
function items(body: string): string[] {
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

/** Words, texts and whole parentheses one behind the other. */
function parts(item: string): string[] {
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

/** What stands in the parentheses around a text. */
const inner = (group = ''): string => group.slice(1, -1).trim();

function readTable(words: KeptWords, name: string, sql: string): Collection & { readonly indexes: Map<string, Index> } {
  const body = parts(sql).find((part) => part.startsWith('(')) ?? '()';
  const lines = items(inner(body)).map((line) => ({ line, parts: parts(line) }));
  const isColumn = ({ parts: [first = ''] }: { readonly parts: readonly string[] }) =>
    !/^(CONSTRAINT|PRIMARY|UNIQUE|CHECK|FOREIGN)$/i.test(first);
  const names = lines.filter(isColumn).map((line) => unquoted(line.parts[0] ?? ''));
  const constraints = lines
    .filter((line) => !isColumn(line))
    .flatMap(({ parts: [word = '', own = '', ...rest] }) =>
      /^CONSTRAINT$/i.test(word) ? constraintOf(unquoted(own), rest, name, names) : [],
    );
  const key = lines.find(({ parts: [first = ''] }) => /^PRIMARY$/i.test(first));
  const keys = items(inner(key?.parts[2])).map(unquoted);
  const fields = lines
    .filter(isColumn)
    .map(({ parts: [own = '', ...rest] }) => fieldOf(words, unquoted(own), rest, keys));
  return { name, fields: byName(fields), indexes: new Map(), constraints: byName(constraints), options: {} };
}

const byName = <T extends { readonly name: string }>(list: readonly T[]): Map<string, T> =>
  new Map(list.map((one) => [one.name, one]));

const CLAUSES = /^(NOT|NULL|UNIQUE|CHECK|DEFAULT|PRIMARY|REFERENCES|COLLATE|CONSTRAINT|GENERATED|AS)$/i;

function fieldOf(words: KeptWords, name: string, rest: readonly string[], keys: readonly string[]): Field {
  const at = rest.findIndex((part) => CLAUSES.test(part));
  const clauses = at < 0 ? [] : rest.slice(at);
  const has = (first: string, second?: string) =>
    clauses.some(
      (part, index) =>
        part.toUpperCase() === first && (second === undefined || clauses[index + 1]?.toUpperCase() === second),
    );
  const after = (word: string) => clauses[clauses.findIndex((part) => part.toUpperCase() === word) + 1];
  const type = readType(words, (at < 0 ? rest : rest.slice(0, at)).join(' '));
  const given = has('DEFAULT') ? after('DEFAULT') : undefined;
  const labels = has('CHECK') && type.type === 'enum' ? parts(inner(after('CHECK'))).at(-1) : undefined;
  const primaryKey = keys.includes(name) || has('PRIMARY', 'KEY');
  return {
    name,
    ...type,
    ...(labels !== undefined && { enumValues: items(inner(labels)).map(stringOf) }),
    ...(primaryKey && { primaryKey }),
    ...((primaryKey || has('NOT', 'NULL')) && { required: true }),
    ...(has('UNIQUE') && { unique: true }),
    ...readDefault(words, given?.startsWith('(') ? inner(given) : given, type.type),
  };
}

function constraintOf(
  name: string,
  [kind = '', ...rest]: readonly string[],
  table: string,
  fields: readonly string[],
): Constraint[] {
  const columns = (group: string | undefined) => items(inner(group)).map(unquoted);
  const action = (when: string) => {
    const at = rest.findIndex((part, index) => part.toUpperCase() === when && rest[index - 1]?.toUpperCase() === 'ON');
    return at < 0
      ? undefined
      : (rest
          .slice(at + 1, at + 3)
          .join(' ')
          .toUpperCase()
          .replace(/^(CASCADE|RESTRICT).*/, '$1') as Action);
  };
  switch (kind.toUpperCase()) {
    case 'CHECK':
      return [defineConstraint({ name, type: 'check', expression: inner(rest[0]) }, table, fields)];
    case 'UNIQUE':
      return [{ name, type: 'unique', columns: columns(rest[0]) }];
    case 'PRIMARY':
      return [{ name, type: 'primaryKey', columns: columns(rest[1]) }];
    case 'FOREIGN': {
      const [onDelete, onUpdate] = [action('DELETE'), action('UPDATE')];
      const references = { table: unquoted(rest[3] ?? ''), columns: columns(rest[4]) };
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
