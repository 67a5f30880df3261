import { Cli, type Command } from 'clipanion';
import { isSvcError, SvcError } from '../core/errors.ts';
import type { SvcContext } from './base.ts';
import { exitStatus } from './exit.ts';
import { commandHelp, overview } from './help.ts';
import { onInterrupt } from './interrupt.ts';
import { misplaced, misunderstood, type Typed } from './misuse.ts';
import { colorsFor, errorLines, errorObject } from './print.ts';
import { inOrder, nearestCommand, route } from './route.ts';
import { ERASE } from './status-line.ts';
import { guardStreams } from './streams.ts';

/** Runs what was typed and gives the exit status. */
export async function start(typed: readonly string[]): Promise<number> {
  const streams = guardStreams();
  const status = await settle(typed);
  const failure = await streams.failure();
  if (!failure) return status;
  process.stderr.write(`error The output could not be written: ${failure.message}\n`);
  return status || 1;
}

async function settle(typed: readonly string[]): Promise<number> {
  const colors = {
    stdout: colorsFor(process.stdout, typed, process.env),
    stderr: colorsFor(process.stderr, typed, process.env),
  };
  const args = typed.filter((word) => word !== '--no-color');
  try {
    return await dispatch(args, colors);
  } catch (error) {
    if (isSvcError(error)) {
      if (args.includes('--json')) process.stdout.write(`${JSON.stringify(errorObject(error), null, 2)}\n`);
      else process.stderr.write(`${errorLines(error, colors.stderr).join('\n')}\n`);
      return exitStatus(error);
    }
    const words = error instanceof Error ? (error.stack ?? error.message) : String(error);
    if (args.includes('--json')) {
      process.stdout.write(
        `${JSON.stringify({ ok: false, code: 'bug', message: String(error), nextActions: [] }, null, 2)}\n`,
      );
    }
    process.stderr.write(`${colors.stderr.red('bug')} Something unforeseen happened in svc itself.\n${words}\n`);
    return 1;
  }
}

async function dispatch(args: readonly string[], colors: SvcContext['colors']): Promise<number> {
  const wantsHelp = args.some((word) => word === '--help' || word === '-h');
  const { entry, words } = route(args);
  if (!entry) {
    const listing = overview(words, colors.stdout);
    if (listing !== undefined && (wantsHelp || args.length === 0)) {
      process.stdout.write(listing);
      return 0;
    }
    const behind = inOrder(args);
    if (behind !== undefined) throw misplaced(behind);
    throw words.length === 0 ? unknownOption(args) : unknownCommand(words, listing !== undefined);
  }
  const { default: Class } = await entry.load();
  const cli = new Cli<SvcContext>({ binaryName: 'svc', enableColors: false });
  cli.register(Class);
  if (wantsHelp) {
    process.stdout.write(commandHelp(entry, cli, colors.stdout));
    return 0;
  }
  const interrupt = onInterrupt((signal) => {
    process.stderr.write(
      `${colors.stderr.isColorSupported ? ERASE : ''}${signal}: stopping after what runs now; once more ends at once.\n`,
    );
  });
  try {
    const typed = args.slice(entry.path.split(' ').length);
    const context: SvcContext = { ...Cli.defaultContext, signal: interrupt.signal, typed, colors };
    return (await parse(cli, { entry, words, args }, context).validateAndExecute()) ?? 0;
  } finally {
    interrupt.stop();
  }
}

function parse(cli: Cli<SvcContext>, typed: Typed, context: SvcContext): Command<SvcContext> {
  try {
    return cli.process([...typed.args], context);
  } catch (error) {
    if (!(error instanceof Error) || !('clipanion' in error)) throw error;
    throw misunderstood(error, typed, cli);
  }
}

function unknownOption([option = '']: readonly string[]): SvcError {
  return new SvcError('usage', `"svc" without a command has no option ${option.split('=', 1)[0]}.`, {
    next: ['svc --help'],
  });
}

function unknownCommand(words: readonly string[], group: boolean): SvcError {
  const typed = words.join(' ');
  if (group) {
    return new SvcError('usage', `"svc ${typed}" needs a subcommand.`, { next: [`svc ${typed} --help`] });
  }
  const near = nearestCommand(words);
  return new SvcError('usage', `"svc ${typed}" is not a command.`, {
    next: near === undefined ? ['svc --help'] : [`Did you mean "svc ${near}"?`, 'svc --help'],
  });
}
