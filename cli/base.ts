import { type BaseContext, Command, Option } from 'clipanion';
import type { Runtime } from '../config/runtime.ts';
import { harmlessJson } from '../core/approval/display.ts';
import { isSvcError, SvcError } from '../core/errors.ts';
import { quoted } from '../core/quoted.ts';
import { exitStatus } from './exit.ts';
import { type Colors, errorLines, errorObject } from './print.ts';
import { StatusLine } from './status-line.ts';

export interface SvcContext extends BaseContext {
  /** Aborted by the first Ctrl-C or SIGTERM: finish the step that runs, journal it, release the lock. */
  readonly signal: AbortSignal;
  /** What was typed behind the command. */
  readonly typed: readonly string[];
  /** Colours of stdout and of stderr. */
  readonly colors: { readonly stdout: Colors; readonly stderr: Colors };
}

/** What a command gives back; `--json` prints it as one object. */
export interface Answer {
  /** Default `ok`. */
  readonly code?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly nextActions?: readonly string[];
  /** Exit status; default 0. Anything else prints `ok: false`. */
  readonly exit?: number;
}

const DATABASE_COMMAND =
  /\bsvc db (?:migrate|schema)(?: (?:status|rollback|create|resolve|export|baseline|generate|pull|check))?\b/g;

/** Behind a command: flags, and then the end or an explanation. */
const ONLY_FLAGS = /^(?: --[a-z-]+)*(?= {2,}|$)/;

/** What every command takes, and how it answers and refuses. A command implements `run`. */
export abstract class SvcCommand extends Command<SvcContext> {
  json = Option.Boolean('--json', false, { description: 'One JSON object on stdout instead of text.' });
  configFile = Option.String('--config', { description: 'The configuration file, instead of the nearest svc.config.' });
  env = Option.String('--env', { description: 'The environment, instead of the one that is linked.' });

  /** Commands on databases take it. */
  db: string | undefined;

  /** The one of several databases that an answer or a refusal is about. */
  about: string | undefined;

  #runtime: Promise<Runtime> | undefined;
  #line: StatusLine | undefined;

  abstract run(): Promise<Answer | undefined>;

  override async execute(): Promise<number> {
    try {
      return this.#answer((await this.run()) ?? {});
    } catch (error) {
      const refusal = asRefusal(error);
      if (!refusal) throw error;
      return this.#refuse(rounded(refusal));
    } finally {
      await this.#runtime?.then((runtime) => runtime.close()).catch(() => {}); // the outcome is settled by now
    }
  }

  /** The configuration, found and checked when first asked for. */
  runtime(): Promise<Runtime> {
    this.#runtime ??= import('../config/runtime.ts').then(({ loadRuntime }) =>
      loadRuntime({
        ...(this.configFile !== undefined && { configFile: this.configFile }),
        ...(this.env !== undefined && { env: this.env }),
      }),
    );
    return this.#runtime;
  }

  get signal(): AbortSignal {
    return this.context.signal;
  }

  /** Colours for what `print` writes. */
  get colors(): Colors {
    return this.context.colors.stdout;
  }

  /** What changes all the time, on stderr; the other lines take its place. Not seen with `--json`. */
  get line(): StatusLine {
    const { stderr, colors } = this.context;
    this.#line ??= new StatusLine(stderr, !this.json && colors.stderr.isColorSupported);
    return this.#line;
  }

  /** A line of data on stdout; nothing with `--json`. */
  print(line = ''): void {
    this.#line?.clear();
    if (!this.json) this.context.stdout.write(`${line}\n`);
  }

  /** A line of JSON on stdout, of what goes on. */
  jsonLine(value: object): void {
    this.context.stdout.write(`${harmlessJson(JSON.stringify(value))}\n`);
  }

  /** A line for the person who waits, on stderr; nothing with `--json`. */
  note(line: string): void {
    this.#line?.clear();
    if (!this.json) this.context.stderr.write(`${line}\n`);
  }

  /** A line that must not be missed, on stderr, with `--json` too. */
  warn(line: string): void {
    this.#line?.clear();
    this.context.stderr.write(`${this.context.colors.stderr.yellow('warning')} ${line}\n`);
  }

  #answer({ code = 'ok', data = {}, nextActions: actions = [], exit = 0 }: Answer): number {
    const nextActions = actions.map((action) => this.#typed(action));
    if (this.json) this.#object({ ok: exit === 0, code, ...data, nextActions });
    else for (const [index, action] of nextActions.entries()) this.note(`${index === 0 ? 'next' : '    '}  ${action}`);
    return exit;
  }

  #refuse(error: SvcError): number {
    this.#line?.clear();
    const told = error.with({ next: error.next.map((action) => this.#typed(action)) });
    if (this.json) this.#object(errorObject(told));
    else for (const line of errorLines(told, this.context.colors.stderr)) this.context.stderr.write(`${line}\n`);
    return exitStatus(error);
  }

  /** What was typed behind the command, where the command run again has to mean the same; none of it is a secret. */
  protected get repeated(): readonly string[] | undefined {
    return undefined;
  }

  /**
   * A command to run next, as it must be typed here to mean the same environment, configuration and database; the
   * command that was typed, with other flags, as it must be to mean the same altogether.
   */
  #typed(action: string): string {
    const flags = Object.entries({ '--config': this.configFile, '--env': this.env, '--db': this.db ?? this.about })
      .filter(([flag, value]) => value !== undefined && !action.includes(`${flag} `))
      .map(([flag, value]) => ` ${flag} ${quoted(String(value))}`)
      .join('');
    const again = this.repeated?.map((word) => ` ${quoted(word)}`).join('');
    const complete = action.replace(DATABASE_COMMAND, (command, offset: number) => {
      const same = command === `svc ${this.path.join(' ')}` && ONLY_FLAGS.test(action.slice(offset + command.length));
      return `${command}${same ? (again ?? flags) : flags}`;
    });
    return process.env.npm_command === 'exec'
      ? complete.replace(/(?<![\w/]|npx )svc (?=[a-z])/g, 'npx svc ')
      : complete;
  }

  #object(value: Readonly<Record<string, unknown>>): void {
    this.context.stdout.write(`${harmlessJson(JSON.stringify(value, null, 2))}\n`);
  }
}

/** What cannot proceed (status 2) has not begun, and where it names a place, that place is to be corrected. */
export function rounded(refusal: SvcError): SvcError {
  if (exitStatus(refusal) !== 2) return refusal;
  const { state = 'Nothing was changed.', next, where } = refusal;
  const correct = next.length === 0 && where !== undefined ? [`Correct ${where}, then run the command again.`] : next;
  return refusal.with({ state, next: correct });
}

/** What is not a bug of ours: a refusal, a prompt that was left with Ctrl-C, a file system that says no. */
export function asRefusal(error: unknown): SvcError | undefined {
  if (isSvcError(error)) return error;
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'ExitPromptError' || error.name === 'AbortPromptError') {
    return new SvcError('interrupted', 'Interrupted at a question.', { state: 'Nothing was changed.', cause: error });
  }
  if ('syscall' in error && 'path' in error && typeof error.path === 'string') {
    return new SvcError('file_failed', 'The file system refused.', {
      why: error.message,
      next: ['Look at the permissions and the space there, then run the command again.'],
      where: error.path,
      cause: error,
    });
  }
  return undefined;
}
