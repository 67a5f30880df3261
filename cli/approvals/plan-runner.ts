import { setTimeout as pause } from 'node:timers/promises';
import type { Runtime } from '../../config/load/runtime.ts';
import { type MigrationFile, readMigrations } from '../../config/project/migration-files.ts';
import { isOutage } from '../../core/approval/backend.ts';
import type { Connection } from '../../core/dialect.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { jsonDigest } from '../../core/json.ts';
import { historyDigest } from '../../core/migration/bound-plan.ts';
import { History } from '../../core/migration/history.ts';
import { migrate } from '../../core/migration/migrate.ts';
import { checksum } from '../../core/migration/migration.ts';
import type { Target } from '../../core/migration/target.ts';
import { restrictedAgent } from '../agent.ts';
import { loadSdk } from '../base.ts';

/*
 * `svc approvals serve --migrate`: a process that alone has the password of the databases. It applies the migrations of its
 * folder, and what needs approval waits until people have approved it.
 */

/** Between two looks at the files and the history. */
const INTERVAL_MS = 5_000;
/** How long one look waits for a decision: then it plans again, because files may have changed. */
const WAIT_MS = 30_000;
const LOCK_TIMEOUT_MS = 60_000;

/** What became of the migrations of a database, each reported once. */
export type RunnerEvent = { readonly database: string } & (
  | { readonly event: 'waiting'; readonly requestId: string; readonly expiresAt: string }
  | { readonly event: 'migrated'; readonly migrations: readonly string[] }
  | { readonly event: 'failed'; readonly error: SvcError }
);

/** Applies the migrations of all databases until the signal aborts. */
export async function runPlans(
  runtime: Runtime,
  signal: AbortSignal,
  report: (event: RunnerEvent) => void,
): Promise<void> {
  await Promise.all(
    runtime.databases.map(async (database) => {
      const runner = new DatabaseRunner(runtime, database, signal, report);
      while (!signal.aborted) {
        await runner.run();
        await pause(INTERVAL_MS, undefined, { signal }).catch(() => undefined);
      }
    }),
  );
}

class DatabaseRunner {
  readonly #runtime: Runtime;
  readonly #database: string;
  readonly #signal: AbortSignal;
  readonly #report: (event: RunnerEvent) => void;
  #reported: string | undefined;
  /** What failed: it is not tried again until a file or the history changes. */
  #failed: string | undefined;

  constructor(runtime: Runtime, database: string, signal: AbortSignal, report: (event: RunnerEvent) => void) {
    this.#runtime = runtime;
    this.#database = database;
    this.#signal = signal;
    this.#report = report;
  }

  async run(): Promise<void> {
    const [runtime, database, signal] = [this.#runtime, this.#database, this.#signal];
    try {
      const defined = await readMigrations(runtime.root, database, loadSdk);
      const target = await runtime.connect(database, { busyTimeoutMs: LOCK_TIMEOUT_MS, signal });
      try {
        await this.#migrate(target, defined);
      } finally {
        await target.connection.close();
      }
    } catch (error) {
      if (!isSvcError(error)) throw error;
      if (signal.aborted || error.code === 'approval_pending') return;
      this.#once(`${error.code} ${error.message}`, { database, event: 'failed', error });
    }
  }

  async #migrate(target: Target, defined: readonly MigrationFile[]): Promise<void> {
    const [runtime, database, signal] = [this.#runtime, this.#database, this.#signal];
    if (this.#failed !== undefined && this.#failed === (await stateOf(target.connection, defined))) return;
    this.#failed = undefined;
    try {
      const { migrations } = await migrate(target, defined, {
        // What may destroy data is always among what the environment asks people about.
        allowDestructive: true,
        lockTimeoutMs: LOCK_TIMEOUT_MS,
        signal,
        ask: {
          waitMs: WAIT_MS,
          asRunner: true,
          isRequired: runtime.protectedEnv && restrictedAgent(runtime) !== undefined,
          signal,
          onWaiting: ({ requestId, expiresAt }) =>
            this.#once(requestId, { database, event: 'waiting', requestId, expiresAt }),
        },
      });
      const tags = migrations.map(({ tag }) => tag);
      if (tags.length > 0) this.#once(tags.join(), { database, event: 'migrated', migrations: tags });
    } catch (error) {
      if (!(isSvcError(error) && mayEnd(error))) this.#failed = await stateOf(target.connection, defined);
      throw error;
    }
  }

  /** Not the same twice in a row. */
  #once(what: string, event: RunnerEvent): void {
    if (what === this.#reported) return;
    this.#reported = what;
    this.#report(event);
  }
}

const stateOf = async (connection: Connection, defined: readonly MigrationFile[]): Promise<string> =>
  jsonDigest([defined.map(({ migration }) => checksum(migration)), historyDigest(await History.read(connection))]);

const MAY_END = ['lock_timeout', 'table_locked', 'database_in_use', 'interrupted'];

/** Whether the same migrations may run later: people have not decided yet, or may be asked again, or a lock is held. */
function mayEnd(error: SvcError): boolean {
  return isOutage(error) || error.code.startsWith('approval_') || MAY_END.includes(error.code);
}

/** Throws `config_invalid` where nobody approves migrations. */
export function assertPlansApproved({ config, env, file }: Runtime): void {
  if (config.environments?.[env]?.approval) return;
  throw new SvcError('config_invalid', `Nobody is configured to approve the migrations of "${env}".`, {
    why: 'With --migrate, the process applies what people approve.',
    state: 'Nothing was changed, and nothing is served.',
    next: [`Set environments.${env}.approval: { role: '…' }, and the role in approvals.roles.`],
    ...(file !== undefined && { where: file }),
  });
}
