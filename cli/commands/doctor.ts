import { Command, Option } from 'clipanion';
import { callbackKeyFor } from '../../config/callback-key.ts';
import type { Runtime } from '../../config/runtime.ts';
import type { Connection } from '../../core/dialect.ts';
import { HISTORY_VERSION, meta } from '../../core/migration/history.ts';
import { withoutPassword } from '../../core/url.ts';
import manifest from '../../package.json' with { type: 'json' };
import { type Answer, asRefusal, SvcCommand } from '../base.ts';
import { oneLine } from '../print.ts';

interface Check {
  readonly name: string;
  readonly result: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** What to do. */
  readonly next?: readonly string[];
}

/** Milliseconds after which a database that says nothing counts as out of reach. */
const PATIENCE = 5_000;

export default class Doctor extends SvcCommand {
  static override paths = [['doctor']];
  static override usage = Command.Usage({
    description: 'Checks configuration, drivers and databases.',
    details:
      'Changes nothing: it looks at Node, the configuration, the environment, plugins, each database, approvals and brokers.',
    examples: [
      ['Everything', 'svc doctor'],
      ['One database in another environment', 'svc doctor --db main --env staging'],
    ],
  });

  override db = Option.String('--db', { description: 'Only the database of this tag.' });

  async run(): Promise<Answer> {
    const checks: Check[] = [];
    const add = (check: Check): void => {
      checks.push(check);
      this.#show(check);
    };
    add(nodeCheck());
    const runtime = await attempt('configuration', () => this.runtime(), add);
    if (runtime) {
      add({ name: 'configuration', result: 'ok', message: runtime.file ?? 'in code' });
      add(envCheck(runtime));
      const plugins = await attempt('plugins', () => runtime.plugins(), add);
      if (plugins)
        add({ name: 'plugins', result: 'ok', message: plugins.map(({ name }) => name).join(', ') || 'none' });
      if (this.db !== undefined) runtime.database(this.db);
      for (const tag of this.db === undefined ? runtime.databases : [this.db]) await checkDatabase(runtime, tag, add);
      if (runtime.databases.length === 0) {
        add({
          name: 'databases',
          result: 'warn',
          message: 'none is configured',
          next: ['Add databases to the configuration.'],
        });
      }
      if (this.db === undefined) {
        await checkApprovals(runtime, add);
        for (const name of Object.keys(runtime.config.brokers ?? {})) await checkBroker(runtime, name, add);
      }
    }
    const failed = checks.filter((check) => check.result === 'fail').length;
    this.print(failed === 0 ? 'Nothing stands in the way.' : `${failed} of ${checks.length} checks failed.`);
    return failed === 0 ? { data: { checks } } : { code: 'check_failed', data: { checks }, exit: 1 };
  }

  #show({ name, result, message, next = [] }: Check): void {
    const paint = { ok: this.colors.green, warn: this.colors.yellow, fail: this.colors.red }[result];
    this.print(`${paint(result.padEnd(4))}  ${name}: ${oneLine(message)}`);
    for (const action of next) this.print(`      -> ${oneLine(action)}`);
  }
}

/** What the work gives, or a failed check out of its refusal. */
async function attempt<T>(name: string, work: () => Promise<T>, add: (check: Check) => void): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    const refusal = asRefusal(error);
    if (!refusal) throw error;
    add({
      name,
      result: 'fail',
      message: [refusal.message, refusal.why, refusal.where && `(${refusal.where})`].filter(Boolean).join(' '),
      next: refusal.next,
    });
    return undefined;
  }
}

function nodeCheck(): Check {
  const needed = manifest.engines.node.replace('>=', '');
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number);
  const enough = major > neededMajor || (major === neededMajor && minor >= neededMinor);
  return enough
    ? { name: 'node', result: 'ok', message: process.versions.node }
    : { name: 'node', result: 'fail', message: process.versions.node, next: [`Install Node ${needed} or later.`] };
}

function envCheck({ env, envFrom, protectedEnv, product }: Runtime): Check {
  const who = { argument: '--env', link: 'svc/config.json', SVC_ENV: 'SVC_ENV', config: 'the configuration' }[envFrom];
  const guarded = protectedEnv ? ', protected: what changes it needs --yes' : '';
  return { name: 'environment', result: 'ok', message: `${env} of ${product} (${who} says so${guarded})` };
}

/** What approvals are configured with; nothing where they are not. */
async function checkApprovals({ config, database }: Runtime, add: (check: Check) => void): Promise<void> {
  const { approvals } = config;
  if (!approvals) return;
  const { store, callbackBase, callbackKey: key, decisions } = approvals;
  await attempt(
    'approvals',
    async () => {
      if (store) database(store.database);
      const needing = decisions ? 'approvals.decisions' : 'approvals.callbackBase';
      if (key !== undefined || callbackBase !== undefined || decisions) callbackKeyFor(needing, config);
      const where = store ? `in the database ${store.database}` : 'in memory, gone with the process';
      add({
        name: 'approvals',
        result: store ? 'ok' : 'warn',
        message: `kept ${where}`,
        ...(!store && { next: STORE }),
      });
    },
    add,
  );
}

const STORE = ["Name a database: approvals: { store: { database: 'main' } }"];

async function checkBroker(runtime: Runtime, name: string, add: (check: Check) => void): Promise<void> {
  await attempt(
    `broker ${name}`,
    async () => {
      await runtime.broker(name);
      add({ name: `broker ${name}`, result: 'ok', message: 'is configured; whether it answers is not asked' });
    },
    add,
  );
}

async function checkDatabase(runtime: Runtime, tag: string, add: (check: Check) => void): Promise<void> {
  const name = `database ${tag}`;
  const url = await attempt(name, async () => runtime.urlOf(tag), add);
  if (url === undefined) return;
  const adapter = await attempt(name, () => runtime.connect(tag, { connectTimeoutMs: PATIENCE }), add);
  if (!adapter) return;
  const { connection } = adapter;
  try {
    add({
      name,
      result: 'ok',
      message: `${connection.server ?? adapter.dialect.name} answers at ${withoutPassword(url)}`,
    });
    const found = await attempt(name, () => connection.records(meta).get('meta'), add);
    if (!found) {
      add({ name, result: 'ok', message: 'no history yet: nothing was migrated here' });
      return;
    }
    add(historyCheck(name, runtime, tag, found.record));
    await attempt(name, () => lockCheck(name, connection, add), add);
  } finally {
    await connection.close();
  }
}

/** Takes the lock and lets go: somebody who migrates right now is no failure. */
async function lockCheck(name: string, connection: Connection, add: (check: Check) => void): Promise<void> {
  try {
    await connection.exclusively(async () => {}, { timeoutMs: 0 });
    add({ name, result: 'ok', message: 'nobody holds the migration lock' });
  } catch (error) {
    const refusal = asRefusal(error);
    if (refusal?.code !== 'lock_timeout') throw error;
    add({ name, result: 'warn', message: refusal.message, next: ['Wait until it is done.'] });
  }
}

function historyCheck(
  name: string,
  { product, env }: Runtime,
  tag: string,
  found: { readonly version: number; readonly product: string; readonly database: string; readonly env: string },
): Check {
  if (found.product !== product || found.database !== tag || found.env !== env) {
    return {
      name,
      result: 'fail',
      message: `it belongs to ${found.product}, database ${found.database}, env ${found.env}`,
      next: ['Check the URL.', 'svc db migrate --adopt, if the database has changed hands'],
    };
  }
  if (found.version > HISTORY_VERSION) {
    return {
      name,
      result: 'fail',
      message: `its history has version ${found.version}, and this SDK knows ${HISTORY_VERSION}`,
      next: [`npm install ${manifest.name}@latest`],
    };
  }
  return { name, result: 'ok', message: `history of version ${found.version}` };
}
