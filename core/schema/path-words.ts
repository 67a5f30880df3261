import { escapeRegExp } from '../match-text.ts';
import type { DatabaseObject } from './database-object.ts';

/** The names of the schemas among these objects. */
export const schemasIn = (objects: readonly DatabaseObject[]): readonly string[] => [
  ...new Set(objects.flatMap(({ kind, name }) => (kind === 'schema' ? [name] : []))),
];

const WORD = /[\p{L}\p{N}_$]+/gu;

/** The words of texts, with a name after one of these schemas and a dot as one word: `billing.invoices`, not `invoices`. */
export class PathWords {
  readonly #schemas: ReadonlySet<string>;
  readonly #path: RegExp | undefined;

  constructor(schemas: readonly string[]) {
    const names = schemas.map((name) => name.toLowerCase());
    this.#schemas = new Set(names);
    const any = names.map((name) => `"${escapeRegExp(name.replaceAll('"', '""'))}"|(?<![\\w$".])${escapeRegExp(name)}`);
    this.#path =
      names.length === 0
        ? undefined
        : new RegExp(String.raw`(${any.join('|')})\s*\.\s*("(?:[^"]|"")+"|[\p{L}\p{N}_$]+)`, 'giu');
  }

  /** In lower case. */
  wordsOf(text: string): readonly string[] {
    const { paths, rest } = this.split(text);
    return [...paths, ...(rest.match(WORD) ?? [])];
  }

  /** The words that are paths, and the text without them, in lower case. */
  split(text: string): { readonly paths: readonly string[]; readonly rest: string } {
    const lower = text.toLowerCase();
    if (!this.#path) return { paths: [], rest: lower };
    const paths: string[] = [];
    const rest = lower.replace(this.#path, (_, schema: string, name: string) => {
      paths.push(pathWord(unquoted(schema), unquoted(name)));
      return ' ';
    });
    return { paths, rest };
  }

  /** The word for a name of one of the schemas; undefined for another one. */
  wordOf(name: string): string | undefined {
    const lower = name.toLowerCase();
    const dot = lower.indexOf('.');
    const schema = lower.slice(0, Math.max(0, dot));
    return this.#schemas.has(schema) ? pathWord(schema, lower.slice(dot + 1)) : undefined;
  }
}

const pathWord = (schema: string, name: string): string => `${schema}.${name}`;

const unquoted = (word: string): string => (word.startsWith('"') ? word.slice(1, -1).replaceAll('""', '"') : word);
