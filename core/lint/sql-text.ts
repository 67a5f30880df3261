/**
 * Raw SQL, cut into statements and clauses as far as lint rules need it. It is no parser: a text that it does not know
 * yields nothing.
 */

export interface SqlStatement {
  /** On one line, without comments, with `''` in place of every literal and `$$` in place of every quoted body. */
  readonly text: string;
  /** As written. */
  readonly source: string;
}

/** Comments, literals and dollar-quoted bodies. Names in quotes stay. */
const HIDDEN =
  /--[^\n]*|#[^\n]*|\/\*[\s\S]*?\*\/|[eEnNxXbB]?'(?:[^'\\]|\\[\s\S]|'')*'|\$(\w*)\$[\s\S]*?\$\1\$|"(?:[^"]|"")*"|`[^`]*`/g;

export function sqlStatements(source: string): readonly SqlStatement[] {
  const isHashComment = (found: string) => found.startsWith('#') && !/^#[>-]/.test(found);
  const bare = source.replace(HIDDEN, (found) => {
    if (found.startsWith('--') || found.startsWith('/*') || isHashComment(found)) return ' ';
    if (found.startsWith('$')) return ' $$ ';
    return /^["`#]/.test(found) ? found : " '' ";
  });
  return splitOutside(bare, ';').flatMap((part) => {
    const text = part.replace(/\s+/g, ' ').trim();
    return text === '' ? [] : [{ text, source }];
  });
}

/** The parts between separators that are outside of brackets and names in quotes. */
function splitOutside(text: string, separator: ',' | ';'): readonly string[] {
  const parts: string[] = [];
  let [depth, start, quote] = [0, 0, ''];
  for (let at = 0; at < text.length; at++) {
    const character = text.charAt(at);
    if (quote !== '') {
      if (character === quote) quote = '';
    } else if (character === '"' || character === '`') quote = character;
    else if (character === '(') depth += 1;
    else if (character === ')') depth -= 1;
    else if (character === separator && depth <= 0) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  parts.push(text.slice(start));
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

/** A name, possibly in quotes and with that of its schema, for regular expressions. */
export const SQL_NAME = String.raw`(?:(?:"(?:[^"]|"")+"|${'`'}[^${'`'}]+${'`'}|[\w$\u0080-\uffff]+)\s*\.\s*)?(?:"(?:[^"]|"")+"|${'`'}[^${'`'}]+${'`'}|[\w$\u0080-\uffff]+)`;

/** The name without quotes and without its schema. Without quotes it is in lower case. */
export function plainName(written: string): string {
  const last = /(?:"((?:[^"]|"")+)"|`([^`]+)`|([\w$\u0080-\uffff]+))$/.exec(written.trim());
  return last?.[1]?.replaceAll('""', '"') ?? last?.[2] ?? (last?.[3] ?? written).toLowerCase();
}

const ALTER_TABLE = new RegExp(String.raw`^alter table (?:if exists )?(?:only )?(${SQL_NAME})(?: \*)? (.+)$`, 'i');

/** One clause of an ALTER TABLE. */
export interface AlterClause {
  readonly table: string;
  readonly clause: string;
}

/** The clauses of the ALTER TABLE statements. */
export const alterClauses = (statements: readonly SqlStatement[]): readonly AlterClause[] =>
  statements.flatMap(({ text }) => {
    const [, table, rest] = ALTER_TABLE.exec(text) ?? [];
    if (table === undefined || rest === undefined) return [];
    return splitOutside(rest, ',').map((clause) => ({ table: plainName(table), clause }));
  });

const CREATE_TABLE = new RegExp(
  String.raw`^create (?:unlogged |temp(?:orary)? |global |local )*table (?:if not exists )?(${SQL_NAME}) ?(?:\((.*)\))?`,
  'i',
);

/** A CREATE TABLE and its columns and constraints. */
export interface CreatedTable {
  readonly table: string;
  readonly members: readonly string[];
  readonly text: string;
}

export const createdTables = (statements: readonly SqlStatement[]): readonly CreatedTable[] =>
  statements.flatMap(({ text }) => {
    const [, table, members] = CREATE_TABLE.exec(text) ?? [];
    return table === undefined
      ? []
      : [{ table: plainName(table), members: members === undefined ? [] : splitOutside(members, ','), text }];
  });

/** What the group of a pattern matches in each statement: its first group is the name of a table. */
export const matching = (
  statements: readonly SqlStatement[],
  pattern: RegExp,
): readonly { readonly table: string; readonly text: string }[] =>
  statements.flatMap(({ text }) => {
    const found = pattern.exec(text);
    return found ? [{ table: found[1] === undefined ? '' : plainName(found[1]), text }] : [];
  });
