import { isPlainObject, type Json, tryParseJson } from '../json.ts';

/** Comments, and quoted names and values, where a backslash escapes a quote or does not: only the engine knows. */
const QUOTED = [
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`/g,
  /--[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\]|\\[\s\S]|'')*'|"(?:[^"\\]|\\[\s\S]|"")*"|`[^`]*`/g,
];
const DOLLAR_QUOTED = /\$(\w*)\$[\s\S]*?\$\1\$/g;
/** Defines code, which does not run yet. */
const DEFINITION = /^\s*create\b[^;(]*?\b(?:function|procedure|trigger|event|package|rule|policy)\b/i;
/** What can be dropped without rows. With `cascade`, others may be dropped that have some. */
const WITHOUT_ROWS =
  /^(?:if exists )?(?:(?:materialized )?view|index|function|procedure|trigger|event|constraint|default|not null|check|foreign key|primary key|key|identity|expression|rule|policy|aggregate|cast|operator|role|user|statistics|publication|subscription)\b(?!.* cascade\b)/;
/** The name of a command of an engine without SQL, such as `dropDatabase`, `DeleteItem`, `FLUSHALL`. */
const COMMAND = /^(?:drop(?!ind)|delete|del$|unlink|flush|truncate|remove|\$unset|\$out)/i;

/**
 * Whether the words of a raw statement say that it drops, truncates or deletes. It is no parser: `destructive` in the
 * migration file decides where it is wrong.
 */
export function wouldDestroyData(text: string): boolean {
  const json = tryParseJson(text);
  return typeof json === 'object' && json !== null ? commandDestroys(json) : sqlDestroys(text);
}

/** A command as JSON: its names are keys, or the first item of a list. A string may be a statement. */
function commandDestroys(value: Json, isName = false): boolean {
  if (typeof value === 'string') return isName ? COMMAND.test(value) : /^\s*(?:drop|delete|truncate)\s/i.test(value);
  if (Array.isArray(value)) return value.some((item: Json, index) => commandDestroys(item, index === 0));
  if (!isPlainObject(value)) return false;
  return Object.entries(value).some(([key, member]) => COMMAND.test(key) || commandDestroys(member as Json));
}

function sqlDestroys(text: string): boolean {
  return QUOTED.some((quoted) => {
    const bare = text.replace(quoted, (found) => (/^(?:--|\/\*)/.test(found) ? ' ' : ' ? '));
    // A routine of several statements, which MySQL writes without quotes.
    if (DEFINITION.test(bare) && /\bend\s*;?\s*$/i.test(bare)) return false;
    // The body of DO runs.
    const outer = /^\s*do\b/i.test(bare) ? bare : bare.replace(DOLLAR_QUOTED, ' ? ');
    return outer.split(';').some(statementDestroys);
  });
}

function statementDestroys(statement: string): boolean {
  if (DEFINITION.test(statement)) return false;
  const words = statement.toLowerCase().replace(/\s+/g, ' ');
  if (/(?<!\b(?:before|after|or|grant|revoke) |, ?)\btruncate\b(?! ?\()/.test(words)) return true;
  if (/(?<!\b(?:on|before|after|of|or|for|grant|revoke) |, ?)\bdelete\b/.test(words)) return true;
  return [...words.matchAll(/\bdrop (?=(?<what>.*))/g)].some(({ groups }) => !WITHOUT_ROWS.test(groups?.what ?? ''));
}
