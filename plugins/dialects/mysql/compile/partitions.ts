import type { Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectOperation, ReplaceObject } from '../../../../core/schema/operation.ts';
import type { ObjectName } from '../../sql/objects.ts';
import type { RawSql } from '../../sql/statement.ts';
import { quoteIdentifier, quoteLiteral } from './literal.ts';
import { tokenize } from './tokens.ts';

/*
 * The partitions of a table: one statement, ALTER TABLE … PARTITION BY …. An edited list is compared with the one before:
 * partitions are added, dropped or reorganized, and the others are left alone.
 */

/** `ALTER TABLE t PARTITION BY …` in its parts. */
interface Partitioning {
  /** From PARTITION BY to the list. */
  readonly method: string;
  /** The definition of each partition, in order; empty where the server numbers them. */
  readonly partitions: readonly Partition[];
}

interface Partition {
  readonly name: string;
  readonly text: string;
  /** Its words in one spelling. */
  readonly key: string;
}

export function compilePartitions(operation: ObjectOperation): readonly Statement<RawSql>[] {
  const table = quoteIdentifier(operation.name);
  switch (operation.type) {
    case 'createObject':
      partitioningOf(operation, operation.definition);
      return [statement(operation.definition, { idempotent: true })];
    case 'dropObject':
      return [
        statement(`ALTER TABLE ${table} REMOVE PARTITIONING`, {
          check: `SELECT 1 FROM DUAL WHERE NOT EXISTS (${partitionsQuery(operation.name)})`,
        }),
      ];
    case 'replaceObject':
      return replace(operation);
  }
}

function replace(operation: ReplaceObject): readonly Statement<RawSql>[] {
  const [before, after] = [partitioningOf(operation, operation.was), partitioningOf(operation, operation.definition)];
  const changes = before.method === after.method ? listChanges(operation.name, before, after) : undefined;
  return changes ?? [statement(operation.definition, { idempotent: true })];
}

/** Undefined if the lists have too little in common: then the table is partitioned again as a whole. */
function listChanges(
  name: string,
  before: Partitioning,
  after: Partitioning,
): readonly Statement<RawSql>[] | undefined {
  const [was, next] = [before.partitions, after.partitions];
  const inAfter = new Set(next.map(({ key }) => key));
  const inBefore = new Set(was.map(({ key }) => key));
  const kept = was.filter(({ key }) => inAfter.has(key));
  const isOrdered = next.filter(({ key }) => inBefore.has(key)).every(({ key }, index) => key === kept[index]?.key);
  if (kept.length === 0 || !isOrdered) return undefined;
  const removed = was.filter(({ key }) => !inAfter.has(key));
  const added = next.filter(({ key }) => !inBefore.has(key));
  const isAtEnd = next.slice(next.length - added.length).every(({ key }) => !inBefore.has(key));
  const isRenewed = removed.some((one) => added.some((other) => sameName(one, other)));
  const table = quoteIdentifier(name);
  const merged =
    added.length === 0 && / partition by range\b/.test(before.method) ? mergedInto(was, removed) : undefined;
  if (merged) {
    return [
      statement(
        `ALTER TABLE ${table} REORGANIZE PARTITION ${names([...removed, merged])} INTO (${definitions([merged])})`,
        reorganized(name, [...removed, merged], [merged]),
      ),
    ];
  }
  if (isAtEnd && !isRenewed) {
    return [
      ...(removed.length === 0
        ? []
        : [
            statement(`ALTER TABLE ${table} DROP PARTITION ${names(removed)}`, {
              destructive: true,
              check: `SELECT 1 FROM DUAL WHERE NOT EXISTS (${partitionsQuery(name, removed)})`,
            }),
          ]),
      ...(added.length === 0
        ? []
        : [
            statement(`ALTER TABLE ${table} ADD PARTITION (${definitions(added)})`, {
              check: partitionsQuery(name, added),
            }),
          ]),
    ];
  }
  // The rows of the partitions between two that stay are in those that come between them.
  const start = next.findIndex(({ key }, index) => key !== was[index]?.key);
  const fromEnd = [...next].reverse().findIndex(({ key }, index) => key !== was[was.length - 1 - index]?.key);
  const end = Math.min(fromEnd, was.length - start, next.length - start);
  const into = next.slice(start, next.length - end);
  const from = was.slice(start, was.length - end);
  if (into.length === 0) return undefined;
  // A partition that begins where another one stays is split off it.
  const split = from.length === 0 ? was.slice(start, start + 1) : from;
  if (split.length === 0) return undefined;
  const result = from.length === 0 ? [...into, ...split] : into;
  return [
    statement(
      `ALTER TABLE ${table} REORGANIZE PARTITION ${names(split)} INTO (${definitions(result)})`,
      reorganized(name, split, result),
    ),
  ];
}

/**
 * The partition after those that are removed from between others: it takes their rows, which were there before they were split
 * off it. Partitions at the start are old ones, dropped with their rows.
 */
function mergedInto(was: readonly Partition[], removed: readonly Partition[]): Partition | undefined {
  const start = was.findIndex((one) => removed.includes(one));
  const end = start + removed.length;
  return start > 0 && was.slice(start, end).every((one) => removed.includes(one)) ? was[end] : undefined;
}

/** How it is found out whether it took effect: by a name that is new, or by one that is gone. */
function reorganized(table: string, from: readonly Partition[], into: readonly Partition[]): Partial<Statement> {
  const isIn = (list: readonly Partition[], one: Partition): boolean => list.some((other) => sameName(one, other));
  const added = into.filter((one) => !isIn(from, one));
  if (added.length > 0) return { check: partitionsQuery(table, added) };
  const gone = from.filter((one) => !isIn(into, one));
  if (gone.length > 0) return { check: `SELECT 1 FROM DUAL WHERE NOT EXISTS (${partitionsQuery(table, gone)})` };
  return { idempotent: true };
}

const sameName = (one: Partition, other: Partition): boolean => one.name.toLowerCase() === other.name.toLowerCase();
const names = (list: readonly Partition[]): string => list.map(({ name }) => quoteIdentifier(name)).join(', ');
const definitions = (list: readonly Partition[]): string => `\n  ${list.map(({ text }) => text).join(',\n  ')}\n`;

const partitionsQuery = (table: string, list?: readonly Partition[]): string =>
  `SELECT 1 FROM information_schema.partitions WHERE table_schema = DATABASE() AND CAST(table_name AS BINARY) = CAST(${quoteLiteral(table)} AS BINARY) AND partition_name ${list ? `IN (${list.map(({ name }) => quoteLiteral(name)).join(', ')})` : 'IS NOT NULL'}`;

function statement(
  text: string,
  facts: Partial<Pick<Statement, 'check' | 'idempotent' | 'destructive'>>,
): Statement<RawSql> {
  return {
    text,
    run: { kind: 'raw', sql: text, inSchema: true },
    transactional: false,
    destructive: false,
    ...facts,
  };
}

/** Throws `migration_invalid` for a text that does not partition the table, or does anything else. */
function partitioningOf(object: ObjectName, definition: string): Partitioning {
  const tokens = [...tokenize(definition)].filter(({ kind }) => kind !== 'comment').map(({ text }) => text);
  const [alter, word, table = '', partition, by] = tokens;
  const isAbout = unquoted(table).toLowerCase() === object.name.toLowerCase();
  if (alter !== 'alter' || word !== 'table' || !isAbout || partition !== 'partition' || by !== 'by')
    throw new SvcError('migration_invalid', `The definition of "${objectKey(object)}" does not create it.`, {
      why: `It begins with: ${tokens.slice(0, 5).join(' ')}`,
      next: [`Begin it with: ALTER TABLE ${quoteIdentifier(object.name)} PARTITION BY …`],
    });
  const list = partitionList(definition);
  const before = list === undefined ? definition : definition.slice(0, list.start);
  return { method: partitionWords(before), partitions: (list?.parts ?? []).map(partitionOf) };
}

function partitionOf(text: string): Partition {
  const [, name = ''] = /^\s*partition\s+(`(?:[^`]|``)*`|[\w$\u0080-\uffff]+)/i.exec(text) ?? [];
  return { name: unquoted(name), text: text.trim(), key: partitionWords(text) };
}

const unquoted = (word: string): string => (word.startsWith('`') ? word.slice(1, -1).replaceAll('``', '`') : word);

/** The words of a text in one spelling, without the engine that each partition has. */
export const partitionWords = (text: string): string =>
  [...tokenize(text)]
    .filter(({ kind }) => kind !== 'comment')
    .map(({ text: word }) => unquoted(word))
    .join(' ')
    .replace(/ (?:storage )?engine (?:= )?innodb\b/gi, '');

/** The last parentheses of a text, if they have definitions of partitions. */
function partitionList(text: string): { readonly start: number; readonly parts: readonly string[] } | undefined {
  let [depth, start, at, from] = [0, -1, 0, 0];
  let parts: string[] = [];
  for (const [token] of text.matchAll(/'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"|`(?:[^`]|``)*`|[(),]|[^'"`(),]+/gs)) {
    if (token === '(') {
      if (depth === 0) {
        start = at;
        from = at + 1;
        parts = [];
      }
      depth += 1;
    }
    if (token === ')') depth -= 1;
    if ((token === ',' && depth === 1) || (token === ')' && depth === 0)) {
      parts.push(text.slice(from, at));
      from = at + 1;
    }
    at += token.length;
  }
  return start >= 0 && /^\s*partition\b/i.test(parts[0] ?? '') ? { start, parts } : undefined;
}

/** How a table is partitioned, from SHOW CREATE TABLE, as a statement; undefined if it is not. */
export function partitioningStatement(table: string, shown: string): string | undefined {
  const options = shown.slice(shown.lastIndexOf('\n)'));
  const found = /\n\s*(?:\/\*!\d+\s+)?(PARTITION BY [\s\S]*?)\s*(?:\*\/)?\s*$/.exec(options)?.[1];
  if (found === undefined) return undefined;
  const text = found.replace(/'(?:[^'\\]|\\.|'')*'|`(?:[^`]|``)*`| ENGINE = InnoDB\b/g, (part) =>
    part.startsWith(' ') ? '' : part,
  );
  return `ALTER TABLE ${quoteIdentifier(table)} ${text}`;
}
