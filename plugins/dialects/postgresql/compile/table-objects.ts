import type { Statement } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectOperation, ReplaceObject } from '../../../../core/schema/operation.ts';
import type { ObjectName } from '../../sql/objects.ts';
import type { RawSql } from '../../sql/statement.ts';
import { sameGrants } from './grants.ts';
import { quoteLiteral } from './literal.ts';
import { pathIn, qualified, quoteIdentifier } from './names.ts';
import { doBlock } from './plpgsql-guards.ts';
import { assertAbout, type Part, partsOf, type Steps, stepsBetween } from './statement-list.ts';
import { temporaryName } from './temporary-names.ts';

/*
 * Objects whose text is a list of statements about one table: the settings of a table, a partition, a table that inherits.
 * An edited text is compared statement by statement: what is gone is undone, what is new is run.
 */

export const TABLE_KINDS: ReadonlySet<string> = new Set(['partition', 'inherited_table']);

/** All of its statements are about something else that is created. */
export const isStatementList = (kind: string): boolean => kind === 'settings' || kind === 'grants';

export const isTableObject = (kind: string): boolean => isStatementList(kind) || TABLE_KINDS.has(kind);

/** Throws `migration_invalid` for a text with anything else. */
export function assertTableObject(object: ObjectName, definition: string): void {
  const [first, ...rest] = partsOf(definition);
  assertAbout(object, isStatementList(object.kind) && first ? [first, ...rest] : rest);
  if (object.kind === 'partition') partitionOf(object, first);
  if (object.kind === 'inherited_table') parentsOf(object, first);
}

export function compileTableObject(operation: ObjectOperation): readonly Statement<RawSql>[] {
  const { kind } = operation;
  switch (operation.type) {
    case 'createObject':
      return [statementOf([asWritten(operation.definition)])];
    case 'dropObject':
      return TABLE_KINDS.has(kind)
        ? [statementOf([{ ...asWritten(dropText(operation, operation.was)), destructive: true }])]
        : [statementOf(stepsBetween(operation, partsOf(operation.was), []))];
    case 'replaceObject':
      return [statementOf(replaced(operation))];
  }
}

/**
 * A foreign key to the parent refers to its partitions too, until they are detached. A sequence that is an object stays when the
 * table that owns it is dropped.
 */
function dropText(object: ObjectName, was: string): string {
  const [first, ...rest] = partsOf(was);
  const name = qualified(object.name, '');
  const released = rest
    .filter(({ words }) => words[0] === 'alter' && words[1] === 'sequence' && words[3] === 'owned')
    .map(({ words }) => `ALTER SEQUENCE ${words[2]} OWNED BY NONE`);
  const detached =
    object.kind === 'partition' ? [`ALTER TABLE ${partitionOf(object, first).parent} DETACH PARTITION ${name}`] : [];
  return [...released, ...detached, `DROP TABLE ${name}`].join(';\n\n');
}

const asWritten = (text: string): Steps => ({ text, sql: text, destructive: false });

const statementOf = (steps: readonly Steps[]): Statement<RawSql> => ({
  text: steps.map(({ text }) => text).join(';\n\n'),
  // Each on a new line: a text may end in a comment.
  run: { kind: 'raw', sql: steps.map(({ sql }) => sql).join('\n;\n'), inSchema: true },
  transactional: true,
  destructive: steps.some(({ destructive }) => destructive),
});

function replaced(operation: ReplaceObject): readonly Steps[] {
  const [before, after] = [partsOf(operation.was), partsOf(operation.definition)];
  if (isStatementList(operation.kind)) return stepsBetween(operation, before, after);
  const [created, ...rest] = after;
  const [was, ...wasRest] = before;
  const attached = operation.kind === 'partition' ? attach(operation, was, created) : [];
  if (operation.kind === 'inherited_table' && was?.words.join(' ') !== created?.words.join(' '))
    throw cannotReplace(operation, 'Its columns and parents are those that it was created with.');
  return [...attached, ...stepsBetween(operation, wasRest, rest)];
}

function cannotReplace(object: ObjectName, why: string): SvcError {
  return new SvcError('migration_invalid', `The CREATE TABLE of "${objectKey(object)}" cannot be changed like that.`, {
    why,
    next: [
      `Restore it, and write what changes after it, such as ALTER TABLE ${qualified(object.name, '')} ADD COLUMN …`,
      'Or write a raw migration that changes the table, and its new text with it.',
    ],
  });
}

interface Partition {
  readonly parent: string;
  /** `FOR VALUES …` or `DEFAULT`. */
  readonly bound: string;
  /** What cannot be changed: how it is created, and by what it is partitioned itself. */
  readonly rest: string;
}

function partitionOf(object: ObjectName, part: Part | undefined): Partition {
  const { text = '', words = [], ends = [] } = part ?? {};
  const at = words.indexOf('partition');
  const parent = words[at + 2];
  const start = words[at + 3] === '(' ? afterList(words, at + 3) : at + 3;
  const end = boundEnd(words, start);
  if (at < 0 || words[at + 1] !== 'of' || parent === undefined || end === undefined)
    throw notCreating(object, 'PARTITION OF measurements FOR VALUES FROM (…) TO (…)');
  return {
    parent,
    bound: text.slice(ends[start - 1], ends[end - 1]).trim(),
    rest: [...words.slice(0, at), ...words.slice(at + 3, start), '|', ...words.slice(end)].join(' '),
  };
}

/** Where DEFAULT or FOR VALUES … ends; undefined if neither is there. */
function boundEnd(words: readonly string[], start: number): number | undefined {
  if (words[start] === 'default') return start + 1;
  if (words[start] !== 'for' || words[start + 1] !== 'values') return undefined;
  const end = afterList(words, start + 3);
  return words[start + 2] === 'from' ? afterList(words, end + 1) : end;
}

/** The index after the parenthesis that closes the one at `start`. */
function afterList(words: readonly string[], start: number): number {
  let depth = 0;
  const end = words.findIndex((word, index) => {
    if (index < start) return false;
    depth += word === '(' ? 1 : word === ')' ? -1 : 0;
    return depth === 0;
  });
  return end < 0 ? words.length : end + 1;
}

/** The parents of a table that inherits, as they are written. */
function parentsOf(object: ObjectName, part: Part | undefined): readonly string[] {
  const words = part?.words ?? [];
  const at = words.lastIndexOf('inherits');
  const end = words.indexOf(')', at);
  if (at < 0 || words[at + 1] !== '(' || end < 0) throw notCreating(object, '(…) INHERITS (cities)');
  return words.slice(at + 2, end).filter((word) => word !== ',');
}

function notCreating(object: ObjectName, example: string): SvcError {
  return new SvcError('migration_invalid', `The definition of "${objectKey(object)}" does not create it.`, {
    why: 'Its first statement is another one.',
    next: [`Begin it with: CREATE TABLE ${qualified(object.name, '')} ${example}`],
  });
}

/** Other bounds, or another name of the parent: the partition keeps its rows, which the server checks. */
function attach(object: ReplaceObject, was: Part | undefined, created: Part | undefined): readonly Steps[] {
  const [before, after] = [partitionOf(object, was), partitionOf(object, created)];
  if (before.rest !== after.rest)
    throw cannotReplace(object, 'Only the parent and the values of a partition can be changed.');
  const isMoved = before.bound !== after.bound;
  if (!isMoved && before.parent === after.parent) return [];
  const partition = qualified(object.name, '');
  const detach = `ALTER TABLE ${before.parent} DETACH PARTITION ${partition}`;
  const attached = `ALTER TABLE ${after.parent} ATTACH PARTITION ${partition} ${after.bound}`;
  // A parent that was renamed is the parent already.
  const condition = isMoved ? 'true' : `current <> to_regclass(${quoteLiteral(after.parent)})`;
  return [
    {
      text: `${detach};\n\n${attached}`,
      sql: doBlock(
        `DECLARE current regclass; BEGIN SELECT inhparent INTO current FROM pg_inherits WHERE inhrelid = to_regclass(${quoteLiteral(partition)}); IF ${condition} THEN EXECUTE format('ALTER TABLE %s DETACH PARTITION %s', current, ${quoteLiteral(partition)}); EXECUTE ${quoteLiteral(attached)}; END IF; END`,
      ),
      destructive: false,
    },
  ];
}

/** The tables that it is a partition of or inherits from. */
export const parentPaths = (object: ObjectName, definition: string): readonly string[] =>
  parentWords(object, definition).map(pathIn);

function parentWords(object: ObjectName, definition: string): readonly string[] {
  const [first] = partsOf(definition);
  return object.kind === 'partition' ? [partitionOf(object, first).parent] : parentsOf(object, first);
}

/** SQL that makes temporary tables of the names of its parents, on which the text can be tried. */
export function temporaryParents(object: ObjectName, definition: string, schema: string): string {
  return parentWords(object, definition)
    .map((parent) => {
      const table = qualified(pathIn(parent), `${quoteIdentifier(schema)}.`);
      const like = `CREATE TEMPORARY TABLE ${quoteIdentifier(temporaryName(pathIn(parent)))} (LIKE ${table} INCLUDING ALL EXCLUDING INDEXES)`;
      return object.kind === 'partition'
        ? doBlock(
            `BEGIN EXECUTE ${quoteLiteral(`${like} PARTITION BY `)} || pg_get_partkeydef(${quoteLiteral(table)}::regclass); END`,
          )
        : like;
    })
    .join('; ');
}

/** Whether two texts of an object have the same statements, in any order, or give the same privileges. */
export function sameStatements(kind: string, one: string, other: string): boolean {
  if (kind === 'grants') return sameGrants(partsOf(one).map(wordsOf), partsOf(other).map(wordsOf));
  const normal = (text: string): string => partsOf(text).map(normalWords).sort().join('\n');
  return normal(one) === normal(other);
}

const wordsOf = ({ words }: Part): readonly string[] => words;

/** Without words that may be left out and quotes that are not needed. */
const normalWords = ({ words }: Part): string =>
  words
    .filter(
      (word, index) =>
        !(word === 'only' && index === 2) && !(word === 'column' && /^(?:alter|add)$/.test(words[index - 1] ?? '')),
    )
    .map((word) => (/^(?:\$|e?')/i.test(word) ? word : word.replace(/"([a-z_][a-z0-9_$]*)"/g, '$1')))
    .join(' ')
    .replace(/^(create \w+) if not exists /, '$1 ');
