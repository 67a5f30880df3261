import { nearest } from '../core/nearest.ts';
import { table } from './command-list.ts';

/** What other tools call a command: its name here, or several if the word has several meanings. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  apply: ['db migrate'],
  deploy: ['db migrate'],
  migrations: ['db migrate status'],
  up: ['db migrate'],
  down: ['db migrate rollback'],
  revert: ['db migrate rollback'],
  undo: ['db migrate rollback'],
  history: ['db migrate status'],
  info: ['db migrate status'],
  new: ['db migrate create'],
  repair: ['db migrate resolve'],
  diff: ['db schema diff', 'db schema check'],
  drift: ['db schema check'],
  validate: ['db schema check'],
  verify: ['db schema check'],
  inspect: ['db schema pull'],
  introspect: ['db schema pull'],
  push: ['db schema generate', 'db migrate'],
  pending: ['approvals list'],
  version: ['--version'],
};

/** The commands that the words may mean, the most likely one first. */
export function similarCommands(words: readonly string[]): readonly string[] {
  const typed = words.map((word) => word.toLowerCase());
  if (typed[0] === 'help') return [`${pathOf(typed.slice(1)) ?? ''} --help`.trim()];
  const known = typed.flatMap((word) => (Object.hasOwn(ELSEWHERE, word) ? (ELSEWHERE[word] ?? []) : []));
  const sameGroup = known.filter((path) => isGroupOf(typed[0], path));
  if (sameGroup.length > 0) return sameGroup.slice(0, MAX_SUGGESTIONS);
  const paths = table.map((entry) => entry.path);
  const mistyped = nearest(
    typed.join(' '),
    paths.filter((path) => isMistyped(typed, path.split(' '))),
  );
  if (mistyped !== undefined) return [mistyped];
  // `svc db status`: a command of which words are left out.
  const shortened = paths.filter((path) => isShortened(typed, path.split(' ')));
  if (shortened.length > 0) return shortened.slice(0, MAX_SUGGESTIONS);
  const group = typed.slice(0, -1);
  if (group.length === 0) return [];
  const isGroup = paths.some((path) => path.startsWith(`${group.join(' ')} `));
  const path = isGroup ? `${group.join(' ')} --help` : pathOf(group);
  return path === undefined ? [] : [path];
}

function pathOf(words: readonly string[]): string | undefined {
  const path = words.join(' ');
  return table.some((entry) => entry.path === path) ? path : similarCommands(words)[0];
}

/** Without a group that exists, any command fits. */
function isGroupOf(word: string | undefined, path: string): boolean {
  const isGroup = table.some((entry) => entry.path.startsWith(`${word} `));
  return !isGroup || path.startsWith(`${word} `);
}

export const didYouMean = (command: string): string => `Did you mean "svc ${command}"?`;

const MAX_SUGGESTIONS = 2;

const isMistyped = (words: readonly string[], path: readonly string[]): boolean =>
  words.length === path.length && path.every((word, at) => nearest(words[at] ?? '', [word]) !== undefined);

function isShortened(words: readonly string[], path: readonly string[]): boolean {
  let at = 0;
  for (const word of path) if (word === words[at]) at += 1;
  return at === words.length && words.at(-1) === path.at(-1);
}
