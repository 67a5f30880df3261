import type { Cli } from 'clipanion';
import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { SvcContext } from './base.ts';
import { usageOf } from './help.ts';
import { inOrder, nearestCommand } from './route.ts';
import type { CommandEntry } from './table.ts';

export interface Typed {
  readonly entry: CommandEntry;
  /** Before the first option. */
  readonly words: readonly string[];
  readonly args: readonly string[];
}

/** What clipanion could not parse, in our words: its own are printed to stdout with a page of usage. */
export function misunderstood(error: Error, { entry, words, args }: Typed, cli: Cli<SvcContext>): SvcError {
  const help = `svc ${entry.path} --help`;
  const behind = inOrder(args, entry);
  if (behind !== undefined) return misplaced(behind);
  const known = optionNames(cli);
  const option =
    /option name \("(-[^"]*)"\)/.exec(error.message)?.[1] ??
    args.find((word) => /^--?[a-z]/.test(word) && !known.includes(word.split('=', 1)[0] ?? ''));
  if (option !== undefined) {
    const [name = option] = option.split('=', 1);
    if (known.includes(name)) {
      return new SvcError('usage', `The option ${name} takes no value.`, { next: [help] });
    }
    const near = nearest(name, known);
    return new SvcError('usage', `"svc ${entry.path}" has no option ${name}.`, {
      next: near === undefined ? [help] : [`Did you mean ${near}?`, help],
    });
  }
  // Behind an option it is none of the words.
  const behindOptions = /^Extraneous positional argument \("(.*)"\)/s.exec(error.message)?.[1];
  const extra = behindOptions === undefined ? words.slice(entry.path.split(' ').length) : [behindOptions];
  if (extra.length === 0 && error.message.startsWith('Command not found')) return needsMore(entry, cli);
  if (error.message.startsWith('Command not found') || error.message.startsWith('Extraneous')) {
    const near = nearestCommand(words);
    return new SvcError('usage', `"svc ${entry.path}" does not take "${extra.join(' ')}".`, {
      next: near === undefined || near === entry.path ? [help] : [`Did you mean "svc ${near}"?`, help],
    });
  }
  if (error.message.startsWith('Not enough positional')) {
    return needsMore(entry, cli);
  }
  return new SvcError('usage', error.message.split('\n', 1)[0] ?? error.message, { next: [help] });
}

export const misplaced = (command: string): SvcError =>
  new SvcError('usage', 'Options stand behind the command.', { next: [command] });

function needsMore(entry: CommandEntry, cli: Cli<SvcContext>): SvcError {
  return new SvcError('usage', `"svc ${entry.path}" needs more than that: ${usageOf(entry, cli)}.`, {
    next: [`svc ${entry.path} --help`],
  });
}

function optionNames(cli: Cli<SvcContext>): string[] {
  const [definition] = cli.definitions();
  return (definition?.options ?? []).flatMap(({ definition: name }) => (name.split(' ', 1)[0] ?? '').split(','));
}
