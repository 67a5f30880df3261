import { wordsWithoutComments } from '../../sql/objects.ts';
import { tokensWithPaths } from './tokens.ts';

/** The name of a routine without its parameters; another name stays. */
export const withoutParameters = (name: string): string => name.replace(/\(.*\)$/s, '');

/** Without comments. A name with its schema is one word. */
export const wordsOf = (definition: string): readonly string[] => wordsWithoutComments(tokensWithPaths(definition));

/** A routine without its body, if that is a string, which is only read when it runs. */
export const routineHead = (definition: string): string => definition.replace(/\bas\s*(?:\$|e?')[\s\S]*$/i, '');

const ATTRIBUTES =
  /^(?:as|language|transform|window|immutable|stable|volatile|leakproof|not|called|strict|security|external|parallel|cost|rows|support|set|begin|return)$/;

/** The arguments and what the result of a routine or an aggregate follows from: what OR REPLACE cannot change. */
export function signature(definition: string): string {
  const words = wordsOf(definition);
  if (words.indexOf('aggregate') === words.indexOf('(') - 2) return aggregateSignature(words);
  let depth = 0;
  const end = words.findIndex((word) => {
    depth += word === '(' ? 1 : word === ')' ? -1 : 0;
    return depth === 0 && ATTRIBUTES.test(word);
  });
  return words.slice(words.indexOf('('), end < 0 ? undefined : end).join(' ');
}

/** Without the functions that OR REPLACE can exchange. */
function aggregateSignature(words: readonly string[]): string {
  const parts: string[][] = [[]];
  let depth = 0;
  for (const word of words.slice(words.indexOf('('))) {
    depth += word === '(' ? 1 : word === ')' ? -1 : 0;
    if ((word === '(' && depth === 1) || (word === ',' && depth < 2)) parts.push([]);
    parts.at(-1)?.push(word);
  }
  const isKept = ([, first = '', next]: readonly string[]): boolean =>
    next !== '=' || /^(?:basetype|stype1?|finalfunc(?:_extra)?|hypothetical)$/.test(first);
  return parts.filter(isKept).flat().join(' ');
}
