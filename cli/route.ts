import { nearest } from '../core/nearest.ts';
import { type CommandEntry, table } from './table.ts';

/** The words before the first option, and the command they name: the longest path that fits. */
export function route(args: readonly string[]): { readonly entry?: CommandEntry; readonly words: readonly string[] } {
  const end = args.findIndex((word) => word.startsWith('-'));
  const words = end < 0 ? args : args.slice(0, end);
  for (let length = words.length; length > 0; length--) {
    const entry = commandAt(words.slice(0, length).join(' '));
    if (entry) return { entry, words };
  }
  return { words };
}

/** The command as it is to be typed, where options stand in the middle of it or before it. */
export function inOrder(args: readonly string[], entry?: CommandEntry): string | undefined {
  const isOption = (word: string | undefined) => word?.startsWith('-') === true;
  // Whether an option takes the next word only its command knows.
  const readings = [
    args.filter((word) => !isOption(word)),
    args.filter((word, at) => !isOption(word) && !isOption(args[at - 1])),
  ];
  for (const words of readings) {
    const found = route(words).entry;
    if (!found || found === entry) continue;
    const path = found.path.split(' ');
    const rest = [...args];
    for (const word of path) rest.splice(rest.indexOf(word), 1);
    return ['svc', ...path, ...rest].join(' ');
  }
  return undefined;
}

/** The command that was probably meant. */
export function nearestCommand(words: readonly string[]): string | undefined {
  const paths = table.map((entry) => entry.path);
  const [only] = words;
  if (words.length === 1 && (only === 'help' || only === 'version')) return `--${only}`;
  return nearest(words.join(' '), paths) ?? nearest(words.slice(0, -1).join(' '), paths);
}

function commandAt(path: string): CommandEntry | undefined {
  return table.find((entry) => entry.path === path);
}
