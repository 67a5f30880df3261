import { createHash } from 'node:crypto';
import { pathIn, quoteIdentifier, relationOf } from './names.ts';
import { tokensWithPaths } from './tokens.ts';

/*
 * A text is tried on temporary objects, which have no schema. Those of other schemas than the one of the connection have names
 * there that no text has, which are found in what the server prints.
 */

export function temporaryName(path: string): string {
  const { schema, name } = relationOf(path);
  return schema === undefined ? name : `~${createHash('sha256').update(path).digest('hex').slice(0, 16)}`;
}

/** The text with the temporary names in place of these paths. */
export function withTemporaryNames(text: string, paths: readonly string[]): string {
  const others = paths.filter((path) => path.includes('.'));
  if (others.length === 0) return text;
  let result = '';
  let at = 0;
  for (const { kind, text: word, end } of tokensWithPaths(text)) {
    const written = text.slice(at, end);
    const path = kind === 'comment' || !word.includes('.') ? undefined : pathIn(word);
    const found = others.find((other) => path === other || path?.startsWith(`${other}.`));
    const blank = /^\s*/.exec(written)?.[0] ?? '';
    const member = found === undefined ? '' : (path ?? '').slice(found.length + 1);
    result +=
      found === undefined
        ? written
        : `${blank}${quoteIdentifier(temporaryName(found))}${member === '' ? '' : `.${quoteIdentifier(member)}`}`;
    at = end;
  }
  return result + text.slice(at);
}

/** A path as the server prints it, and the name in it. */
export interface PrintedPath {
  readonly path: string;
  readonly printed: string;
  readonly printedName: string;
}

/** What the server printed, with the paths in place of the temporary names. It qualifies a field by the name of the table only. */
export function withoutTemporaryNames(text: string, paths: readonly PrintedPath[]): string {
  let result = text;
  for (const { path, printed, printedName } of paths) {
    const quoted = quoteIdentifier(temporaryName(path));
    result = result
      .replaceAll(new RegExp(`(?<=\\b(?:ON COLUMN|OWNED BY) )${quoted}`, 'g'), () => printed)
      .replaceAll(`${quoted}.`, () => `${printedName}.`)
      .replaceAll(quoted, () => printed);
  }
  return result;
}
