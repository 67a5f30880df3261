import { isDeepStrictEqual } from 'node:util';
import type { Cli } from 'clipanion';
import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { SvcContext } from './base.ts';
import { type CommandEntry, table } from './command-list.ts';
import { commandHelpData, usageOf } from './help.ts';
import { didYouMean, similarCommands } from './similar-commands.ts';

/** The words before the first option, and the command with the longest matching path. */
export function findCommand(args: readonly string[]): {
  readonly entry?: CommandEntry;
  readonly words: readonly string[];
} {
  const end = args.findIndex((word) => word.startsWith('-'));
  const words = end < 0 ? args : args.slice(0, end);
  for (let length = words.length; length > 0; length--) {
    const entry = commandAt(words.slice(0, length).join(' '));
    if (entry) return { entry, words };
  }
  return { words };
}

/** The corrected command line, if options were typed before or inside the command. */
export function reorder(args: readonly string[], entry?: CommandEntry): string | undefined {
  const isOption = (word: string | undefined) => word?.startsWith('-') === true;
  // Whether an option has a value depends on the command, so both readings are tried.
  const readings = [
    args.filter((word) => !isOption(word)),
    args.filter((word, at) => !isOption(word) && !isOption(args[at - 1])),
  ];
  for (const words of readings) {
    const found = findCommand(words).entry;
    if (!found || found === entry) continue;
    const path = found.path.split(' ');
    const rest = [...args];
    for (const word of path) rest.splice(rest.indexOf(word), 1);
    return ['svc', ...path, ...rest].join(' ');
  }
  return undefined;
}

function commandAt(path: string): CommandEntry | undefined {
  return table.find((entry) => entry.path === path);
}

export interface Invocation {
  readonly entry: CommandEntry;
  /** The words before the first option. */
  readonly words: readonly string[];
  readonly args: readonly string[];
}

/** Translates a parse error of clipanion, which would print to stdout with a page of usage. */
export function parseError(error: Error, { entry, words, args }: Invocation, cli: Cli<SvcContext>): SvcError {
  const help = `svc ${entry.path} --help`;
  const reordered = reorder(args, entry);
  if (reordered !== undefined) return misplacedOptions(reordered);
  const known = optionNames(cli);
  const option =
    /option name \("(-[^"]*)"\)/.exec(error.message)?.[1] ??
    args.find((word) => /^--?[a-z]/.test(word) && !known.includes(word.split('=', 1)[0] ?? ''));
  if (option !== undefined) {
    const [name = option] = option.split('=', 1);
    if (known.includes(name)) {
      return new SvcError('usage', `The option ${name} does not accept a value.`, { next: [help] });
    }
    const near = nearest(name, known);
    return new SvcError('usage', `"svc ${entry.path}" has no option ${name}.`, {
      next: near === undefined ? [help] : [`Did you mean ${near}?`, help],
    });
  }
  // In place of what is missing, clipanion blames a word that is right.
  const { options } = commandHelpData(entry, cli);
  const isOption = (word: string | undefined) => word === undefined || word.startsWith('-');
  const lackingValue = args.find(
    (word, at) => isOption(args[at + 1]) && options.some((one) => one.argument !== null && one.names.includes(word)),
  );
  if (lackingValue !== undefined) {
    const negative = args.find((word, at) => args[at - 1] === lackingValue && /^-\d/.test(word));
    const message =
      negative === undefined
        ? `The option ${lackingValue} needs a value.`
        : `The option ${lackingValue} does not accept "${negative}".`;
    return new SvcError('usage', message, { next: [help] });
  }
  const given = args.map((word) => word.split('=', 1)[0] ?? '');
  if (options.some(({ names, required }) => required && !names.some((name) => given.includes(name)))) {
    return missingArguments(entry, cli);
  }
  // After an option, the extra argument is not among the words.
  const afterOptions = /^Extraneous positional argument \("(.*)"\)/s.exec(error.message)?.[1];
  const positional = [...words.slice(entry.path.split(' ').length), ...afterDashes(args)];
  const extra = afterOptions === undefined ? positional : [afterOptions];
  if (extra.length === 0 && error.message.startsWith('Command not found')) return missingArguments(entry, cli);
  if (error.message.startsWith('Command not found') || error.message.startsWith('Extraneous')) {
    const similar = similarCommands(words).filter((path) => path.replace(' --help', '') !== entry.path);
    return new SvcError('usage', `"svc ${entry.path}" does not accept "${extra.join(' ')}".`, {
      next: [...similar.map(didYouMean), help],
    });
  }
  if (error.message.startsWith('Not enough positional')) {
    return missingArguments(entry, cli);
  }
  return new SvcError('usage', error.message.split('\n', 1)[0] ?? error.message, { next: [help] });
}

/** Options that name something: an empty variable of a script would leave the choice to a default. */
const NAMES: readonly string[] = ['--env', '--db', '--config'];

/** Throws `usage` for an option that is given twice, of which clipanion takes the last, and for a name that is empty. */
export function assertOptionValues(
  { entry, args }: Invocation,
  cli: Cli<SvcContext>,
  command: Readonly<Record<string, unknown>>,
): void {
  const next = [`svc ${entry.path} --help`];
  const lists = Object.values(command).filter((value) => Array.isArray(value));
  for (const [name, values] of valuesByOption(args, commandHelpData(entry, cli).options)) {
    // Only a command whose option is repeatable has its values as a list.
    const isRepeatable = lists.some((list) => isDeepStrictEqual(list, values));
    if (values.length > 1 && !isRepeatable) {
      throw new SvcError('usage', `The option ${name} is given ${values.length} times.`, {
        why: `Its values are ${values.map((value) => `"${value}"`).join(' and ')}.`,
        state: 'Nothing was changed.',
        next,
      });
    }
    if (NAMES.includes(name) && values.includes('')) {
      throw new SvcError('usage', `The option ${name} needs a value, and its value is empty.`, {
        state: 'Nothing was changed.',
        next,
      });
    }
  }
}

type HelpOptions = ReturnType<typeof commandHelpData>['options'];

/** The values of each option that has one, by its last name. */
function valuesByOption(args: readonly string[], options: HelpOptions): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  const end = args.indexOf('--');
  const given = end < 0 ? args : args.slice(0, end);
  for (let at = 0; at < given.length; at += 1) {
    const word = given[at] ?? '';
    const [typed = '', ...bound] = word.split('=');
    const option = options.find(({ names, argument }) => argument !== null && names.includes(typed));
    if (!option) continue;
    const name = option.names.at(-1) ?? typed;
    const value = word.includes('=') ? bound.join('=') : given[++at];
    if (value !== undefined) found.set(name, [...(found.get(name) ?? []), value]);
  }
  return found;
}

function afterDashes(args: readonly string[]): readonly string[] {
  const at = args.indexOf('--');
  return at < 0 ? [] : args.slice(at + 1);
}

export const misplacedOptions = (command: string): SvcError =>
  new SvcError('usage', 'Options must come after the command.', { next: [command] });

function missingArguments(entry: CommandEntry, cli: Cli<SvcContext>): SvcError {
  return new SvcError('usage', `"svc ${entry.path}" needs more arguments: ${usageOf(entry, cli)}.`, {
    next: [`svc ${entry.path} --help`],
  });
}

function optionNames(cli: Cli<SvcContext>): string[] {
  const [definition] = cli.definitions();
  return (definition?.options ?? []).flatMap(({ definition: name }) => (name.split(' ', 1)[0] ?? '').split(','));
}
