import { SvcError } from '../../../../core/errors.ts';
import type { ReplaceObject } from '../../../../core/schema/operation.ts';
import { wordsWithoutComments } from '../../sql/objects.ts';
import { quoteIdentifier } from './literal.ts';
import { tokenize } from './tokens.ts';

/** The options of a sequence, each as it is written with one space between its words. */
const OPTIONS: Readonly<Record<'increment' | 'start' | 'min' | 'max' | 'cache' | 'cycle', RegExp>> = {
  increment: /\bincrement (?:by )?(?:= )?(-? ?\d+)/,
  start: /\bstart (?:with )?(?:= )?(-? ?\d+)/,
  min: /\bminvalue (?:= )?(-? ?\d+)|\bno ?minvalue\b/,
  max: /\bmaxvalue (?:= )?(-? ?\d+)|\bno ?maxvalue\b/,
  cache: /\bcache (?:= )?(\d+)|\bnocache\b/,
  cycle: /\bnocycle\b|\b(cycle)\b/,
};

/** Names every option: ALTER leaves those out of the text as they are, where CREATE takes their default. */
export function alterSequence({ name, definition, was }: Pick<ReplaceObject, 'name' | 'definition' | 'was'>): string {
  const options = optionsOf(definition);
  const value = (option: keyof typeof OPTIONS): string | undefined =>
    OPTIONS[option].exec(options.words)?.[1]?.replace(' ', '');
  const rest = Object.values(OPTIONS).reduce((words, option) => words.replace(option, ''), options.words);
  if (rest.trim() !== '' || options.ofTable !== optionsOf(was).ofTable) throw notReplaced(name);
  const increment = value('increment') ?? '1';
  const [min, max] = [value('min'), value('max')];
  const start = value('start') ?? (increment.startsWith('-') ? (max ?? '-1') : (min ?? '1'));
  const cache = OPTIONS.cache.exec(options.words);
  return [
    `ALTER SEQUENCE ${quoteIdentifier(name)} START WITH ${start}`,
    min === undefined ? 'NOMINVALUE' : `MINVALUE ${min}`,
    max === undefined ? 'NOMAXVALUE' : `MAXVALUE ${max}`,
    `INCREMENT BY ${increment}`,
    cache && cache[1] === undefined ? 'NOCACHE' : `CACHE ${cache?.[1] ?? DEFAULT_CACHE}`,
    value('cycle') === undefined ? 'NOCYCLE' : 'CYCLE',
  ].join(' ');
}

const DEFAULT_CACHE = 1000;

/** The words after the name, and those of the table in which the server keeps the sequence. */
function optionsOf(definition: string): { readonly words: string; readonly ofTable: string } {
  const all = wordsWithoutComments(tokenize(definition));
  const at = all.indexOf('sequence') + 1;
  const words = all.slice(at + (all[at] === 'if' ? 4 : 1));
  const table = words.findIndex((word) => TABLE_OPTIONS.has(word));
  const end = table < 0 ? words.length : table;
  return { words: words.slice(0, end).join(' '), ofTable: words.slice(end).join(' ') };
}

const TABLE_OPTIONS: ReadonlySet<string> = new Set(['engine', 'comment']);

function notReplaced(name: string): SvcError {
  return new SvcError('migration_invalid', `"sequence/${name}" cannot be replaced.`, {
    why: 'ALTER SEQUENCE changes the start, the limits, the increment, the cache and the cycle of a sequence, and nothing else.',
    next: ['Write a raw migration for the change, and restore the file.'],
  });
}
