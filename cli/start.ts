import { Cli, type Command } from 'clipanion';
import { isSvcError, SvcError } from '../core/errors.ts';
import type { SvcContext } from './base.ts';
import { exitStatus } from './exit-status.ts';
import { commandHelp, commandHelpData, isGroup, overview, overviewData } from './help.ts';
import { colorsFor, ERASE_LINE, errorLines, errorObject, isInteractive, resultText } from './output.ts';
import { assertOptionValues, findCommand, type Invocation, misplacedOptions, parseError, reorder } from './routing.ts';
import { didYouMean, similarCommands } from './similar-commands.ts';

/** Runs a command line and returns the exit status. */
export async function start(typed: readonly string[]): Promise<number> {
  const streams = guardStreams();
  const status = await runReportingErrors(typed);
  const failure = await streams.failure();
  if (!failure) return status;
  process.stderr.write(`error The output could not be written: ${failure.message}\n`);
  return status || 1;
}

async function runReportingErrors(typed: readonly string[]): Promise<number> {
  const colors = {
    stdout: colorsFor(process.stdout, typed, process.env),
    stderr: colorsFor(process.stderr, typed, process.env),
  };
  const args = typed.filter((word) => word !== '--no-color');
  try {
    return await dispatch(args, colors);
  } catch (error) {
    if (isSvcError(error)) {
      if (args.includes('--json')) process.stdout.write(resultText(errorObject(error)));
      else process.stderr.write(`${errorLines(error, colors.stderr).join('\n')}\n`);
      return exitStatus(error);
    }
    const report = error instanceof Error ? (error.stack ?? error.message) : String(error);
    if (args.includes('--json')) {
      process.stdout.write(resultText(bugObject(error)));
    }
    process.stderr.write(`${colors.stderr.red('bug')} An unexpected error occurred in svc.\n${report}\n`);
    return 1;
  }
}

async function dispatch(args: readonly string[], colors: SvcContext['colors']): Promise<number> {
  const wantsHelp = args.some((word) => word === '--help' || word === '-h');
  const asJson = args.includes('--json');
  // Absent in a pipe, where lines are not wrapped.
  const columns: number | undefined = process.stdout.columns;
  const { entry, words } = findCommand(args);
  if (!entry) {
    const showsHelp = wantsHelp || args.every((word) => word === '--json');
    if (showsHelp && isGroup(words)) {
      process.stdout.write(
        asJson ? resultText(successObject(overviewData(words))) : overview(words, colors.stdout, columns),
      );
      return 0;
    }
    const reordered = reorder(args);
    if (reordered !== undefined) throw misplacedOptions(reordered);
    throw words.length === 0 ? unknownOption(args) : unknownCommand(words);
  }
  const { default: Class } = await entry.load();
  const cli = new Cli<SvcContext>({ binaryName: 'svc', enableColors: false });
  cli.register(Class);
  if (wantsHelp) {
    process.stdout.write(
      asJson
        ? resultText(successObject({ ...commandHelpData(entry, cli) }))
        : commandHelp(entry, cli, colors.stdout, columns),
    );
    return 0;
  }
  const interrupt = onInterrupt((signal) => {
    process.stderr.write(
      `${isInteractive(process.stderr, colors.stderr) ? ERASE_LINE : ''}${signal}: ${Class.stopping}; repeat to stop immediately.\n`,
    );
  });
  try {
    const commandArgs = args.slice(entry.path.split(' ').length);
    const context: SvcContext = { ...Cli.defaultContext, signal: interrupt.signal, args: commandArgs, colors };
    return (await parse(cli, { entry, words, args }, context).validateAndExecute()) ?? 0;
  } finally {
    interrupt.stop();
  }
}

function parse(cli: Cli<SvcContext>, invocation: Invocation, context: SvcContext): Command<SvcContext> {
  let command: Command<SvcContext>;
  try {
    command = cli.process([...invocation.args], context);
  } catch (error) {
    if (!(error instanceof Error) || !('clipanion' in error)) throw error;
    throw parseError(error, invocation, cli);
  }
  assertOptionValues(invocation, cli, { ...command });
  return command;
}

const successObject = (data: Readonly<Record<string, unknown>>) => ({ ok: true, code: 'ok', ...data, nextActions: [] });

function bugObject(error: unknown): Record<string, unknown> {
  return {
    ok: false,
    code: 'bug',
    message: String(error),
    why: null,
    state: null,
    nextActions: [],
    where: null,
    details: {},
  };
}

function unknownOption([option = '']: readonly string[]): SvcError {
  return new SvcError('usage', `"svc" without a command has no option ${option.split('=', 1)[0]}.`, {
    next: ['svc --help'],
  });
}

function unknownCommand(words: readonly string[]): SvcError {
  const typed = words.join(' ');
  if (isGroup(words)) {
    return new SvcError('usage', `"svc ${typed}" needs a subcommand.`, { next: [`svc ${typed} --help`] });
  }
  return new SvcError('usage', `"svc ${typed}" is not a command.`, {
    next: [...similarCommands(words).map(didYouMean), 'svc --help'],
  });
}

/**
 * Ignores a closed pipe (`svc … | head`): further output is dropped and the command finishes. Any other failure of
 * stdout, such as a full disk, is reported at the end.
 */
function guardStreams(): { failure(): Promise<Error | undefined> } {
  let failure: Error | undefined;
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE' && stream === process.stdout) failure ??= error;
    });
  }
  return {
    async failure() {
      for (const stream of [process.stdout, process.stderr]) {
        await new Promise<void>((written) => stream.write('', () => written()));
      }
      return failure;
    },
  };
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/** On the first signal, the command stops at a safe point; the second ends the process. */
function onInterrupt(notice: (signal: string) => void): { readonly signal: AbortSignal; stop(): void } {
  const controller = new AbortController();
  const listen = (signal: NodeJS.Signals): void => {
    if (controller.signal.aborted) process.exit(130);
    controller.abort();
    notice(signal);
  };
  for (const signal of SIGNALS) process.on(signal, listen);
  return {
    signal: controller.signal,
    stop: () => {
      for (const signal of SIGNALS) process.off(signal, listen);
    },
  };
}
