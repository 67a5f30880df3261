import { isatty } from 'node:tty';
import { SvcError } from '../core/errors.ts';
import type { SvcCommand } from './base.ts';

export interface Question {
  readonly message: string;
  /** The flag that answers it where nobody can be asked. */
  readonly flag: string;
}

/** Whether somebody can be asked: a terminal on both ends, and no `--json`. */
export function canAsk(command: SvcCommand): boolean {
  return !command.json && isatty(0) && isatty(2);
}

/** Words that are nearly a yes are none: what follows may not be to be undone. */
const ANSWERS: Readonly<Record<string, boolean>> = { y: true, yes: true, n: false, no: false, '': false };
const answerOf = (typed: string): boolean | undefined => ANSWERS[typed.trim().toLowerCase()];

/** Asks yes or no. Throws `confirmation_required` where there is no terminal. */
export async function confirm(command: SvcCommand, question: Question): Promise<boolean> {
  mustAsk(command, question);
  const { input } = await import('@inquirer/prompts');
  const typed = await input(
    {
      message: `${question.message} (y/N)`,
      validate: (given) => answerOf(given) !== undefined || 'Answer y or n.',
    },
    onTerminal(command),
  );
  return answerOf(typed) === true;
}

/** Asks for words, which may be none. Throws `confirmation_required` where there is no terminal. */
export async function words(command: SvcCommand, question: Question): Promise<string | undefined> {
  mustAsk(command, question);
  const { input } = await import('@inquirer/prompts');
  return (await input({ message: question.message }, onTerminal(command))).trim() || undefined;
}

/** Asks for one of several. Throws `confirmation_required` where there is no terminal. */
export async function choose<T>(
  command: SvcCommand,
  question: Question,
  choices: readonly { readonly name: string; readonly value: T }[],
): Promise<T> {
  mustAsk(command, question);
  const { select } = await import('@inquirer/prompts');
  return select({ message: question.message, choices: [...choices] }, onTerminal(command));
}

function mustAsk(command: SvcCommand, { message, flag }: Question): void {
  if (canAsk(command)) return;
  throw new SvcError('confirmation_required', `A question needs an answer: ${message}`, {
    why: 'There is no terminal to ask on.',
    state: 'Nothing was changed.',
    next: [flag],
  });
}

/** stdout is for data: questions go to stderr. */
function onTerminal(command: SvcCommand): { output: NodeJS.WriteStream; signal: AbortSignal } {
  return { output: process.stderr, signal: command.signal };
}
