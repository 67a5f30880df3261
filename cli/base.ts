import { type BaseContext, Command, Option } from 'clipanion';
import { fileError } from '../config/load/path-problem.ts';
import type { Runtime } from '../config/load/runtime.ts';
import { escapeJson } from '../core/display/escape-json.ts';
import { isSvcError, SvcError, shellQuote } from '../core/errors.ts';
import { watchExit } from './early-exit.ts';
import { exitStatus } from './exit-status.ts';
import { type Colors, errorLines, errorObject, isInteractive, resultText, StatusLine } from './output.ts';

export interface SvcContext extends BaseContext {
  /** Aborted by the first Ctrl-C or SIGTERM: finish the current step, record it, release the lock. */
  readonly signal: AbortSignal;
  /** The arguments after the command. */
  readonly args: readonly string[];
  readonly colors: { readonly stdout: Colors; readonly stderr: Colors };
}

/** The result of a command; `--json` prints it as one object. */
export interface CommandResult {
  /** Default `ok`. */
  readonly code?: string;
  readonly data?: Readonly<Record<string, unknown>>;
  readonly nextActions?: readonly string[];
  /** Exit status, default 0. Any other prints `ok: false`. */
  readonly exit?: number;
}

const DATABASE_COMMAND =
  /\bsvc db (?:migrate|schema)(?: (?:status|rollback|create|lint|resolve|export|baseline|generate|pull|check|diff))?\b/g;
const APPROVALS_COMMAND =
  /\bsvc (?:approvals (?:list|show|approve|reject|prune|secret|standing (?:list|revoke))|people (?:token|delegation) (?:list|revoke))\b/g;

/** The text after a command without arguments: flags, then the end or an explanation. */
const ONLY_FLAGS = /^(?: --[a-z-]+)*(?= {2,}|$)/;

/** `@svc/sdk` in user modules. */
export const loadSdk = () => import('../config/sdk/index.ts');

const loadApprover = async () => (await import('../config/sdk/plan-approver.ts')).CallPlanApprover;

/** Has the common options of all commands, and prints results and errors. Commands implement `run`. */
export abstract class SvcCommand extends Command<SvcContext> {
  /** What the command does after the first Ctrl-C or SIGTERM. */
  static stopping = 'stopping after the current step';

  /** The command prints one JSON object per line, for each event, instead of one object at the end. */
  static printsJsonLines = false;

  json = Option.Boolean('--json', false, { description: 'Prints one JSON object to stdout instead of text.' });
  configFile = Option.String('--config', { description: 'The configuration file. Default: the nearest svc.config.' });
  env = Option.String('--env', { description: 'The environment. Default: the linked one.' });

  /** `--db`, in commands on databases. */
  db: string | undefined;

  /** `--server`, in commands on requests. */
  server: string | undefined;

  /** With several databases: the one that the result or error refers to. */
  failedDatabase: string | undefined;

  /** When the progress of a step was last reported, by performance.now(). */
  lastProgressAt = -Infinity;

  #runtime: Promise<Runtime> | undefined;
  #statusLine: StatusLine | undefined;

  abstract run(): Promise<CommandResult | undefined>;

  override async execute(): Promise<number> {
    const exit = watchExit(this.context.signal, (error) => this.#fail(error));
    try {
      const result = await this.run();
      return exit.printed(result === undefined && this.#printsJsonLines ? 0 : this.#succeed(result ?? {}));
    } catch (error) {
      const expected = asSvcError(error);
      if (!expected) throw error;
      return exit.printed(this.#fail(withDefaults(expected)));
    } finally {
      await this.#runtime?.then((runtime) => runtime.close()).catch(() => {}); // The result is already known.
      exit.stop();
    }
  }

  /** Loads the configuration on first use. */
  runtime(): Promise<Runtime> {
    this.#runtime ??= import('../config/load/runtime.ts').then(({ loadRuntime }) =>
      loadRuntime(
        {
          ...(this.configFile !== undefined && { configFile: this.configFile }),
          ...(this.env !== undefined && { env: this.env }),
        },
        loadSdk,
        loadApprover,
      ),
    );
    return this.#runtime;
  }

  /** For a command on a server, which has the configuration. Throws `usage`. */
  protected assertNoConfiguration(): void {
    const given = Object.entries({ '--env': this.env, '--config': this.configFile }).find(
      ([, value]) => value !== undefined,
    );
    if (!given) return;
    throw new SvcError('usage', `${given[0]} does not go with a server.`, {
      why: 'The server has the configuration, and with it the environment.',
      next: [`Leave out ${given[0]}.`],
    });
  }

  get signal(): AbortSignal {
    return this.context.signal;
  }

  /** Resolves when the command is to stop. */
  untilStopped(): Promise<void> {
    return new Promise((stop) => {
      if (this.signal.aborted) stop();
      else this.signal.addEventListener('abort', () => stop(), { once: true });
    });
  }

  /** The colors of stdout. */
  get colors(): Colors {
    return this.context.colors.stdout;
  }

  /** A progress line on stderr that other output replaces. Hidden with `--json`. */
  get statusLine(): StatusLine {
    const { stderr, colors } = this.context;
    this.#statusLine ??= new StatusLine(stderr, !this.json && isInteractive(stderr, colors.stderr));
    return this.#statusLine;
  }

  /** Prints a line of data to stdout; nothing with `--json`. */
  print(line = ''): void {
    this.#statusLine?.clear();
    if (!this.json) this.context.stdout.write(`${line}\n`);
  }

  /** Prints an event to stdout as one line of JSON. */
  jsonLine(value: object): void {
    this.context.stdout.write(`${escapeJson(JSON.stringify(value))}\n`);
  }

  /** Prints a line for a person to stderr; nothing with `--json`. */
  note(line: string): void {
    this.#statusLine?.clear();
    if (!this.json) this.context.stderr.write(`${line}\n`);
  }

  /** Prints a warning to stderr, also with `--json`. */
  warn(line: string): void {
    this.#statusLine?.clear();
    this.context.stderr.write(`${this.context.colors.stderr.yellow('warning')} ${line}\n`);
  }

  #succeed({ code = 'ok', data = {}, nextActions: actions = [], exit = 0 }: CommandResult): number {
    const nextActions = actions.map((action) => this.complete(action));
    if (this.json) this.#printObject({ ok: exit === 0, code, ...data, nextActions });
    else for (const [index, action] of nextActions.entries()) this.note(`${index === 0 ? 'next' : '    '}  ${action}`);
    return exit;
  }

  #fail(error: SvcError): number {
    this.#statusLine?.clear();
    const completed = this.completed(error);
    if (this.json) this.#printObject(errorObject(completed));
    else for (const line of errorLines(completed, this.context.colors.stderr)) this.context.stderr.write(`${line}\n`);
    return exitStatus(error);
  }

  /** The arguments to repeat when a next step is the same command. Must not include secrets. */
  protected get repeatArgs(): readonly string[] | undefined {
    return undefined;
  }

  /** The error with its suggested commands complete. */
  protected completed(error: SvcError): SvcError {
    const next = error.code === 'usage' && error.next.length === 0 ? [`svc ${this.path.join(' ')} --help`] : error.next;
    return error.with({ next: next.map((action) => this.complete(action)) });
  }

  /**
   * Adds flags to a suggested command so that it uses the same configuration, environment and database. If it is the
   * current command, adds all of its arguments.
   */
  protected complete(action: string): string {
    if (action.endsWith(' --help')) return action;
    const missing = (flags: Readonly<Record<string, string | undefined>>): string =>
      Object.entries(flags)
        .filter(([flag, value]) => value !== undefined && !action.includes(`${flag} `))
        .map(([flag, value]) => ` ${flag} ${shellQuote(String(value))}`)
        .join('');
    const common = { '--config': this.configFile, '--env': this.env };
    const flags = missing({ ...common, '--db': this.db ?? this.failedDatabase });
    const repeated = this.repeatArgs?.map((word) => ` ${shellQuote(word)}`).join('');
    const complete = action
      .replace(DATABASE_COMMAND, (command, offset: number) => {
        const same = command === `svc ${this.path.join(' ')}` && ONLY_FLAGS.test(action.slice(offset + command.length));
        return `${command}${same ? (repeated ?? flags) : flags}`;
      })
      .replace(
        APPROVALS_COMMAND,
        (command) => `${command}${missing(this.server ? { '--server': this.server } : common)}`,
      );
    return process.env.npm_command === 'exec'
      ? complete.replace(/(?<![\w/]|npx )svc (?=[a-z])/g, 'npx svc ')
      : complete;
  }

  get #printsJsonLines(): boolean {
    return (this.constructor as typeof SvcCommand).printsJsonLines;
  }

  #printObject(value: Readonly<Record<string, unknown>>): void {
    if (this.#printsJsonLines) this.jsonLine(value);
    else this.context.stdout.write(resultText(value));
  }
}

/** Adds a default state and next step to errors with exit status 2, after which nothing has changed. */
export function withDefaults(error: SvcError): SvcError {
  if (exitStatus(error) !== 2) return error;
  const { state = 'Nothing was changed.', next, where } = error;
  const correct = next.length === 0 && where !== undefined ? [`Fix ${where}, then run the command again.`] : next;
  return error.with({ state, next: correct });
}

/** Converts expected errors: SvcErrors, a prompt left with Ctrl-C, file system errors. Undefined for a bug. */
export function asSvcError(error: unknown): SvcError | undefined {
  if (isSvcError(error)) return error;
  if (!(error instanceof Error)) return undefined;
  if (error.name === 'ExitPromptError' || error.name === 'AbortPromptError') {
    return new SvcError('interrupted', 'The command was interrupted at a prompt.', {
      state: 'Nothing was changed.',
      cause: error,
    });
  }
  if (!('path' in error) || typeof error.path !== 'string') return undefined;
  return fileError(error, 'A file could not be read or written.');
}
