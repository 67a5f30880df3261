import { SvcError } from '../../../../core/errors.ts';
import { objectKey } from '../../../../core/schema/database-object.ts';
import type { ObjectName } from '../../sql/objects.ts';
import { grantOf } from './grants.ts';
import { quoteLiteral } from './literal.ts';
import { pathIn, qualified, qualifiedIn } from './names.ts';
import { doBlock } from './plpgsql-guards.ts';
import { tokensWithPaths } from './tokens.ts';

/** One of the statements of a text about a table. */
export interface Part {
  readonly text: string;
  /** Without comments; words in lower case, quoted names in their quotes. */
  readonly words: readonly string[];
  /** Where each word ends in `text`. */
  readonly ends: readonly number[];
}

/** What takes a statement back. */
interface Undo {
  readonly text: string;
  /** What is executed instead, where it depends on the catalog. */
  readonly sql?: string;
  readonly destructive?: true;
}

type Found = Readonly<Record<string, string>>;

interface Form {
  /** Words; `$name` is one of any kind, `[word]` may be left out, `…` is the rest. */
  readonly words: string;
  /** Only of a table that is an object itself. */
  readonly ofOwnTable?: true;
  readonly undo: (found: Found) => Undo;
}

/** On all that inherit from the table too, unless the statement was on the one table. */
const column = ({ table, field, only = '' }: Found, action: string): Undo => ({
  text: `ALTER TABLE ${only}${table} ALTER COLUMN ${field} ${action}`,
});

/** The action that a query on the column `a` finds. */
function columnAsFound(found: Found, what: string, query: string): Undo {
  const { table = '', field = '', only = '' } = found;
  return {
    text: `ALTER TABLE ${only}${table} ALTER COLUMN ${field} ${what}`,
    sql: `DECLARE action text; BEGIN SELECT ${query} INTO action FROM pg_attribute a LEFT JOIN pg_inherits i ON i.inhrelid = a.attrelid LEFT JOIN pg_attribute p ON p.attrelid = i.inhparent AND p.attname = a.attname WHERE a.attrelid = to_regclass(${quoteLiteral(table)}) AND a.attname = ${quoteLiteral(pathIn(field))} LIMIT 1; IF action IS NOT NULL THEN EXECUTE ${quoteLiteral(`ALTER TABLE ${only}${table} ALTER COLUMN ${field} `)} || action; END IF; END`,
  };
}

const parentsDefault = (found: Found): Undo =>
  columnAsFound(
    found,
    'SET DEFAULT (that of the parent)',
    "COALESCE('SET DEFAULT ' || (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef d WHERE d.adrelid = p.attrelid AND d.adnum = p.attnum), 'DROP DEFAULT')",
  );

/** The parameters without their values: `(a, b)`. */
const parameterNames = (rest = ''): string =>
  `(${rest
    .replace(/^\s*\(|\)\s*$/g, '')
    .split(',')
    .map((one) => one.replace(/\s*=.*$/s, '').trim())
    .join(', ')})`;

const FORMS: readonly Form[] = [
  {
    words: 'alter table [only] $table alter [column] $field set storage $value',
    undo: (found) =>
      columnAsFound(
        found,
        'SET STORAGE (that of the type)',
        "'SET STORAGE ' || CASE COALESCE(p.attstorage, (SELECT t.typstorage FROM pg_type t WHERE t.oid = a.atttypid)) WHEN 'p' THEN 'PLAIN' WHEN 'e' THEN 'EXTERNAL' WHEN 'm' THEN 'MAIN' ELSE 'EXTENDED' END",
      ),
  },
  {
    words: 'alter table [only] $table alter [column] $field set compression $value',
    undo: (found) => column(found, 'SET COMPRESSION default'),
  },
  {
    words: 'alter table [only] $table alter [column] $field set statistics $value',
    undo: (found) => column(found, 'SET STATISTICS -1'),
  },
  {
    words: 'alter table [only] $table alter [column] $field set ( …',
    undo: (found) => column(found, `RESET ${parameterNames(found.rest)}`),
  },
  {
    words: 'alter index $index alter [column] $field set statistics $value',
    undo: ({ index, field }) => ({ text: `ALTER INDEX ${index} ALTER COLUMN ${field} SET STATISTICS -1` }),
  },
  {
    words: 'alter table $table cluster on $index',
    undo: ({ table }) => ({ text: `ALTER TABLE ${table} SET WITHOUT CLUSTER` }),
  },
  {
    words: 'alter table [only] $table replica identity …',
    undo: ({ table }) => ({ text: `ALTER TABLE ${table} REPLICA IDENTITY DEFAULT` }),
  },
  { words: 'alter table $table of $type', undo: ({ table }) => ({ text: `ALTER TABLE ${table} NOT OF` }) },
  {
    words: 'alter sequence $sequence owned by $column',
    undo: ({ sequence }) => ({ text: `ALTER SEQUENCE ${sequence} OWNED BY NONE` }),
  },
  {
    words: 'alter table $table add constraint $constraint foreign key …',
    undo: ({ table, constraint }) => ({ text: `ALTER TABLE ${table} DROP CONSTRAINT ${constraint}` }),
  },
  {
    words: 'comment on sequence $sequence is $text',
    undo: ({ sequence }) => ({ text: `COMMENT ON SEQUENCE ${sequence} IS NULL` }),
  },
  { words: 'comment on index $index is $text', undo: ({ index }) => ({ text: `COMMENT ON INDEX ${index} IS NULL` }) },
  {
    words: 'comment on constraint $constraint on $table is $text',
    undo: ({ constraint, table }) => ({ text: `COMMENT ON CONSTRAINT ${constraint} ON ${table} IS NULL` }),
  },
  {
    words: 'comment on table $table is $text',
    ofOwnTable: true,
    undo: ({ table }) => ({ text: `COMMENT ON TABLE ${table} IS NULL` }),
  },
  {
    words: 'comment on column $column is $text',
    ofOwnTable: true,
    undo: (found) => ({ text: `COMMENT ON COLUMN ${found.column} IS NULL` }),
  },
  { words: 'alter table [only] $table alter [column] $field set default …', ofOwnTable: true, undo: parentsDefault },
  { words: 'alter table [only] $table alter [column] $field drop default', ofOwnTable: true, undo: parentsDefault },
  {
    words: 'alter table [only] $table alter [column] $field set not null',
    ofOwnTable: true,
    undo: ({ table, field }) => ({ text: `ALTER TABLE ${table} ALTER COLUMN ${field} DROP NOT NULL` }),
  },
  {
    words: 'alter table [only] $table add constraint $constraint …',
    ofOwnTable: true,
    undo: ({ table, constraint }) => ({ text: `ALTER TABLE ${table} DROP CONSTRAINT ${constraint}` }),
  },
  {
    words: 'alter table [only] $table add [column] $field …',
    ofOwnTable: true,
    undo: ({ table, field }) => ({ text: `ALTER TABLE ${table} DROP COLUMN ${field}`, destructive: true }),
  },
  {
    words: 'alter table [only] $table set ( …',
    ofOwnTable: true,
    undo: ({ table, rest }) => ({ text: `ALTER TABLE ${table} RESET ${parameterNames(rest)}` }),
  },
  {
    words: 'create [unique] index $index on [only] $table …',
    ofOwnTable: true,
    undo: ({ table = '', index = '' }) => ({
      text: `DROP INDEX ${qualifiedIn(pathIn(table), pathIn(index), '')}`,
    }),
  },
];

/** The statements of a text, without their semicolons. */
export function partsOf(definition: string): readonly Part[] {
  const parts: Part[] = [];
  let words: string[] = [];
  let ends: number[] = [];
  let start = 0;
  const finish = (): void => {
    const text = definition.slice(start, ends.at(-1));
    const blank = text.length - text.trimStart().length;
    if (words.length > 0) parts.push({ text: text.trimStart(), words, ends: ends.map((end) => end - start - blank) });
    [words, ends] = [[], []];
  };
  for (const token of tokensWithPaths(definition)) {
    if (token.kind === 'comment') continue;
    if (token.text === ';') {
      finish();
      start = token.end;
    } else {
      words.push(token.text);
      ends.push(token.end);
    }
  }
  finish();
  return parts;
}

/** Throws `migration_invalid` for a statement that is about something else than the table, or of no known form. */
export function assertAbout(object: ObjectName, parts: readonly Part[]): void {
  for (const part of parts) undoOf(object, part);
}

function undoOf(object: ObjectName, part: Part): Undo {
  if (object.kind === 'grants') return { text: grantOf(object, part).undo };
  for (const form of FORMS) {
    if (form.ofOwnTable && object.kind === 'settings') continue;
    const found = match(form.words, part);
    const table = tableIn(found);
    if (found && (table === undefined || pathIn(table) === object.name)) return form.undo(found);
  }
  throw new SvcError('migration_invalid', `A statement of "${objectKey(object)}" is not one that belongs there.`, {
    why: `svc does not know how to take it back: ${part.text.slice(0, 200)}`,
    next: [
      `Write statements about ${qualified(object.name, '')} of these forms: ${FORMS.filter(
        ({ ofOwnTable }) => !ofOwnTable || object.kind !== 'settings',
      )
        .map(({ words }) => words.toUpperCase().replaceAll('…', '...'))
        .join('; ')}.`,
      'Write others in a raw migration.',
    ],
  });
}

/** The table that a statement is about; the last part of a column's name is the field. */
const tableIn = (found: Found | undefined): string | undefined =>
  found?.table ?? found?.column?.replace(/\.(?:"(?:[^"]|"")*"|[^."]*)$/, '');

function match(form: string, { text, words }: Part): Found | undefined {
  const found: Record<string, string> = {};
  let at = 0;
  for (const expected of form.split(' ')) {
    if (expected === '…') {
      found.rest = text.slice(Math.max(0, text.indexOf('(')));
      return at < words.length ? found : undefined;
    }
    const word = words[at];
    const optional = /^\[(.+)\]$/.exec(expected)?.[1];
    if (optional !== undefined) {
      if (word !== optional) continue;
      if (word === 'only') found.only = 'ONLY ';
      at += 1;
    } else if (word === undefined) return undefined;
    else if (expected.startsWith('$')) {
      // A number may be negative.
      found[expected.slice(1)] = word;
      at += word === '-' ? 2 : 1;
    } else if (word === expected) at += 1;
    else return undefined;
  }
  return at === words.length ? found : undefined;
}

const sameWords = (one: Part, other: Part): boolean =>
  one.words.length === other.words.length && one.words.every((word, index) => word === other.words[index]);

/** What leads from the statements of one text to those of another: texts for people, and SQL. */
export interface Steps {
  readonly text: string;
  readonly sql: string;
  readonly destructive: boolean;
}

export function stepsBetween(object: ObjectName, before: readonly Part[], after: readonly Part[]): readonly Steps[] {
  const gone = before.filter((part) => !after.some((other) => sameWords(part, other)));
  // What takes a grant back takes all that another one gives, too.
  const isEach = object.kind === 'grants' && gone.length > 0;
  const added = isEach ? after : after.filter((part) => !before.some((other) => sameWords(part, other)));
  return [
    ...[...gone].reverse().map((part) => undone(object, part)),
    ...added.map(({ text }) => ({ text, sql: text, destructive: false })),
  ];
}

/** What it was about may be gone already, with the index or the field. */
function undone(object: ObjectName, part: Part): Steps {
  const { text, sql = `BEGIN EXECUTE ${quoteLiteral(text)}; END`, destructive = false } = undoOf(object, part);
  const guarded = sql.replace(
    /END$/,
    'EXCEPTION WHEN undefined_table OR undefined_column OR undefined_object OR undefined_function OR invalid_schema_name THEN NULL; END',
  );
  return { text, sql: doBlock(guarded), destructive };
}
