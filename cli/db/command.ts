import { Option } from 'clipanion';
import type { MigrationFile } from '../../config/project/migration-files.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import type { AskOptions } from '../../core/migration/plan-approver.ts';
import type { Target } from '../../core/migration/target.ts';
import { assertNoAgent, restrictedAgent } from '../agent.ts';
import { loadSdk, SvcCommand } from '../base.ts';
import { parseSeconds, parseWait } from '../flag-values.ts';
import { batchProgress } from './progress.ts';

/** The help of `--db` in commands for a single database. */
export const SINGLE_DATABASE = 'The tag of the database. Required if several are configured.';

/** A command on the configured databases. */
export abstract class DatabaseCommand extends SvcCommand {
  override db = Option.String('--db', {
    description: 'The tag of one database. Default: all, in the order of the configuration.',
  });

  /** Whether people are asked before it changes anything, where the environment says so. */
  readonly asksPeople: boolean = false;

  /** The selected databases, in the order of the configuration. */
  async databaseTags(): Promise<readonly string[]> {
    const runtime = await this.runtime();
    if (this.db !== undefined) {
      runtime.database(this.db);
      return [this.db];
    }
    if (runtime.databases.length > 0) return runtime.databases;
    throw new SvcError('config_invalid', 'No database is configured.', {
      next: ["Add databases: { main: { dialect: 'postgresql', url: … } } to the configuration."],
      ...(runtime.file !== undefined && { where: runtime.file }),
    });
  }

  /** The single selected database. Throws `database_ambiguous` if there are several. */
  async singleTag(what: string): Promise<string> {
    const tags = await this.databaseTags();
    const [tag] = tags;
    if (tag !== undefined && tags.length === 1) return tag;
    throw new SvcError('database_ambiguous', `${what} needs one database, and ${tags.length} are configured.`, {
      why: `Configured: ${tags.join(', ')}.`,
      state: 'Nothing was changed.',
      next: tags.map((name) => `--db ${name}`),
      details: { databases: tags },
    });
  }

  /** For commands that only read. */
  async connect(tag: string): Promise<Target> {
    return (await this.runtime()).connect(tag, { readOnly: true });
  }

  async migrations(tag: string): Promise<MigrationFile[]> {
    const { readMigrations } = await import('../../config/project/migration-files.ts');
    return readMigrations((await this.runtime()).root, tag, loadSdk);
  }

  /** Throws `protected_env` in a protected environment without `--yes`. */
  async assertNotProtected(yes: boolean): Promise<void> {
    const runtime = await this.runtime();
    const { env, protectedEnv, file } = runtime;
    if (protectedEnv) assertNoAgent(runtime, 'change a protected database', this.asksPeople);
    if (!protectedEnv || yes) return;
    throw new SvcError('protected_env', `The environment "${env}" is protected.`, {
      why: 'Commands that change it need --yes.',
      state: 'Nothing was changed.',
      next: [`svc ${[...this.path, '--yes'].join(' ')}`],
      ...(file !== undefined && { where: file }),
    });
  }

  /** `main (dev)` */
  async label(tag: string): Promise<string> {
    return `${tag} (${(await this.runtime()).env})`;
  }
}

/** A command that takes the migration lock, waiting for other migrators. */
export abstract class MigratorCommand extends DatabaseCommand {
  lockTimeout = Option.String('--lock-timeout', {
    description: 'Seconds to wait while another process migrates. Default: 60.',
  });

  allowCopy = Option.Boolean('--allow-copy', false, {
    description: 'PostgreSQL, MySQL, MariaDB: allows statements that copy a table and block it until they finish.',
  });

  /** Whether the command only shows what it would do. */
  readonly dryRun: boolean = false;

  /** Throws `usage` for an invalid number of seconds. */
  get lock(): { readonly lockTimeoutMs: number } {
    return { lockTimeoutMs: parseSeconds('--lock-timeout', this.lockTimeout) ?? 60_000 };
  }

  /** Without `--dry-run`: after a dry run, the suggested command runs the plan. */
  protected override get repeatArgs(): readonly string[] {
    return this.context.args.filter((word) => word !== '--dry-run');
  }

  override async connect(tag: string): Promise<Target> {
    const label = await this.label(tag);
    const connecting = (await this.runtime()).connect(tag, {
      busyTimeoutMs: this.lock.lockTimeoutMs,
      ...(this.dryRun && { readOnly: true }),
      ...(this.allowCopy && { allowCopy: true }),
      signal: this.signal,
      onProgress: batchProgress(this),
      onWait: () => this.note(`Waiting for another process that has ${label} open …`),
    });
    return connecting.catch((error) => {
      const isInUse = isSvcError(error) && error.code === 'database_in_use';
      throw isInUse ? error.with({ next: [...error.next, 'To wait longer: --lock-timeout 300'] }) : error;
    });
  }
}

/** `--count-rows` of the commands whose plans may destroy data. */
export const countRowsOption = () =>
  Option.Boolean('--count-rows', false, {
    description: 'Counts all rows that are lost, and the values of dropped fields. Default: up to 10,000 rows.',
  });

/** A command whose plan waits for people, where the environment says so. */
export abstract class PlanCommand extends MigratorCommand {
  override readonly asksPeople = true;

  wait = Option.String('--wait', {
    description: 'How long to wait for approval, such as 30m, where the environment requires it. Default: not at all.',
  });

  askAgain = Option.Boolean('--ask-again', false, {
    description: 'Requests approval of a plan again that was rejected.',
  });

  /** Whether it counts every row that is lost. */
  readonly countRows: boolean = false;

  /** Throws `usage` for an invalid duration. */
  async ask(): Promise<{ readonly ask: AskOptions }> {
    const runtime = await this.runtime();
    return {
      ask: {
        ...(this.wait !== undefined && { waitMs: parseWait('--wait', this.wait) }),
        askAgain: this.askAgain,
        countsAll: this.countRows,
        isRequired: runtime.protectedEnv && restrictedAgent(runtime) !== undefined,
        signal: this.signal,
        onWaiting: ({ requestId, expiresAt, url }) =>
          this.note(`Waiting for approval of ${url ?? requestId}, which is open until ${expiresAt} …`),
      },
    };
  }
}

/** Runs `work` for each database in turn. Stops at the first failure and reports the databases not started. */
export async function forEachDatabase<T extends object>(
  command: DatabaseCommand,
  work: (tag: string) => Promise<T>,
): Promise<({ readonly database: string } & T)[]> {
  const tags = await command.databaseTags();
  const done: ({ readonly database: string } & T)[] = [];
  for (const [index, tag] of tags.entries()) {
    try {
      done.push({ database: tag, ...(await work(tag)) });
    } catch (error) {
      if (!isSvcError(error) || tags.length === 1) throw error;
      const rest = tags.slice(index + 1);
      command.failedDatabase = tag;
      command.note(`${tag}: failed${rest.length > 0 ? `; not started: ${rest.join(', ')}` : ''}`);
      throw error.with({
        ...(error.state !== undefined && { state: `${tag}: ${error.state}` }),
        details: {
          databases: [
            ...done,
            { database: tag, failed: true },
            ...rest.map((database) => ({ database, started: false })),
          ],
        },
      });
    }
  }
  return done;
}
