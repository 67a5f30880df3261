import { setTimeout } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { SvcError } from '../core/errors.ts';
import type { SvcCommand } from './base.ts';

export interface PromptOptions {
  readonly message: string;
  /** The flag to use without a terminal. */
  readonly flag: string;
}

/** Whether a person can answer: stdin and stderr are terminals, and `--json` is not set. */
export function canPrompt(command: SvcCommand): boolean {
  return !command.json && isatty(0) && isatty(2);
}

/** Only exact answers are accepted, because the action may be irreversible. */
const ANSWERS: Readonly<Record<string, boolean>> = { y: true, yes: true, n: false, no: false, '': false };
const answerOf = (typed: string): boolean | undefined => ANSWERS[typed.trim().toLowerCase()];

/**
 * Prompts for yes or no. What was typed or pasted before the question is not an answer to it. Throws
 * `confirmation_required` without a terminal.
 */
export async function confirm(command: SvcCommand, options: PromptOptions): Promise<boolean> {
  assertCanPrompt(command, options);
  await discardTypedAhead();
  const { input } = await import('@inquirer/prompts');
  const typed = await input(
    {
      message: `${options.message} (y/N)`,
      validate: (given) => answerOf(given) !== undefined || 'Answer y or n.',
    },
    terminalOptions(command),
  );
  return answerOf(typed) === true;
}

/** Prompts for optional text. Throws `confirmation_required` without a terminal. */
export async function promptText(command: SvcCommand, options: PromptOptions): Promise<string | undefined> {
  assertCanPrompt(command, options);
  const { input } = await import('@inquirer/prompts');
  return (await input({ message: options.message }, terminalOptions(command))).trim() || undefined;
}

/** Prompts for a secret, which the terminal does not show. Throws `confirmation_required` without a terminal. */
export async function promptSecret(command: SvcCommand, options: PromptOptions): Promise<string> {
  assertCanPrompt(command, options);
  const { password } = await import('@inquirer/prompts');
  return password({ message: options.message }, terminalOptions(command));
}

/** Prompts for one of several choices. Throws `confirmation_required` without a terminal. */
export async function choose<T>(
  command: SvcCommand,
  options: PromptOptions,
  choices: readonly { readonly name: string; readonly value: T }[],
): Promise<T> {
  assertCanPrompt(command, options);
  const { select } = await import('@inquirer/prompts');
  return select({ message: options.message, choices: [...choices] }, terminalOptions(command));
}

/** How long no key must arrive before a question is asked. */
const QUIET_MS = 50;
const CTRL_C = 3;

/** Node has no tcflush: reads what the terminal has kept, until nothing more arrives. */
async function discardTypedAhead(): Promise<void> {
  const { stdin } = process;
  let hasInput = false;
  const discard = (typed: Buffer): void => {
    hasInput = true;
    if (typed.includes(CTRL_C)) process.kill(process.pid, 'SIGINT');
  };
  stdin.setRawMode(true);
  stdin.on('data', discard);
  do {
    hasInput = false;
    await setTimeout(QUIET_MS);
  } while (hasInput);
  stdin.off('data', discard).pause();
  stdin.setRawMode(false);
}

function assertCanPrompt(command: SvcCommand, { message, flag }: PromptOptions): void {
  if (canPrompt(command)) return;
  throw new SvcError('confirmation_required', `The command needs an answer: ${message}`, {
    why: 'There is no terminal to prompt on.',
    state: 'Nothing was changed.',
    next: [flag],
  });
}

/** Prompts go to stderr, because stdout is for data. */
function terminalOptions(command: SvcCommand): { output: NodeJS.WriteStream; signal: AbortSignal } {
  return { output: process.stderr, signal: command.signal };
}
