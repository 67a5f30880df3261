import type { Cli } from 'clipanion';
import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';
import type { SvcContext } from './base.ts';
import { usageOf } from './help.ts';
import { nearestCommand } from './route.ts';
import type { CommandEntry } from './table.ts';

/** What clipanion could not parse, in our words: its own are printed to stdout with a page of usage. */
export function misunderstood(
  error: Error,
  entry: CommandEntry,
  words: readonly string[],
  cli: Cli<SvcContext>,
): SvcError {
  const help = `svc ${entry.path} --help`;
  const option = /option name \("(-[^"]*)"\)/.exec(error.message)?.[1];
  if (option !== undefined) {
    const [name = option] = option.split('=', 1);
    const near = nearest(name, optionNames(cli));
    return new SvcError('usage', `"svc ${entry.path}" has no option ${name}.`, {
      next: near === undefined || near === name ? [help] : [`Did you mean ${near}?`, help],
    });
  }
  const extra = words.slice(entry.path.split(' ').length);
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

function needsMore(entry: CommandEntry, cli: Cli<SvcContext>): SvcError {
  return new SvcError('usage', `"svc ${entry.path}" needs more than that: ${usageOf(entry, cli)}.`, {
    next: [`svc ${entry.path} --help`],
  });
}

function optionNames(cli: Cli<SvcContext>): string[] {
  const [definition] = cli.definitions();
  return (definition?.options ?? []).flatMap(({ definition: name }) => (name.split(' ', 1)[0] ?? '').split(','));
}
