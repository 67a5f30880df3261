import { Command, Option } from 'clipanion';
import type { Runtime } from '../../config/load/runtime.ts';
import { requireCallbackKey } from '../../config/sdk/callback/token.ts';
import { describeError, errorMessage, isSvcError } from '../../core/errors.ts';
import manifest from '../../package.json' with { type: 'json' };
import { agentMarker, isLocal } from '../agent.ts';
import { type CommandResult, SvcCommand } from '../base.ts';
import { type Check, checkDatabase, tryCheck } from '../db/doctor-checks.ts';
import { oneLine } from '../output.ts';

export default class Doctor extends SvcCommand {
  static override paths = [['doctor']];
  static override usage = Command.Usage({
    description: 'Checks the configuration, drivers and databases.',
    details:
      'Checks Node, the configuration, the environment, plugins, approvals, channels and brokers; and of each database the history, the migration files, drift, and the permissions that svc db migrate needs. Changes nothing.',
    examples: [
      ['Everything', 'svc doctor'],
      ['One database in another environment', 'svc doctor --db main --env staging'],
    ],
  });

  override db = Option.String('--db', { description: 'Checks only the database with this tag.' });

  async run(): Promise<CommandResult> {
    const checks: Check[] = [];
    const add = (found: Check): void => {
      const known = found.result === 'fail' && checks.find((one) => isSameFailure(one, found));
      const first = known ? notChecked(found, known) : found;
      const check = { ...first, ...(first.next && { next: first.next.map((action) => this.complete(action)) }) };
      checks.push(check);
      this.#show(check);
    };
    add(nodeCheck());
    const runtime = await tryCheck('configuration', () => this.runtime(), add);
    if (runtime) {
      add({ name: 'configuration', result: 'ok', message: runtime.file ?? 'in code' });
      add(envCheck(runtime));
      const agent = agentCheck(runtime);
      if (agent) add(agent);
      const plugins = await tryCheck('plugins', () => runtime.plugins(), add);
      if (plugins)
        add({ name: 'plugins', result: 'ok', message: plugins.map(({ name }) => name).join(', ') || 'none' });
      if (this.db !== undefined) runtime.database(this.db);
      for (const tag of this.db === undefined ? runtime.databases : [this.db]) {
        if (runtime.databases.length > 1) this.failedDatabase = tag;
        await checkDatabase(runtime, tag, add);
      }
      this.failedDatabase = undefined;
      if (runtime.databases.length === 0) {
        add({
          name: 'databases',
          result: 'warn',
          message: 'none configured',
          next: ['Add databases to the configuration.'],
        });
      }
      if (this.db === undefined) {
        await checkApprovals(runtime, checks, add);
        for (const name of Object.keys(runtime.config.approvals?.channels ?? {})) {
          const check = `channel ${name}`;
          await tryCheck(
            check,
            async () => {
              await runtime.channel(name);
              add({ name: check, result: 'ok', message: 'configured; doctor delivers nothing' });
            },
            add,
          );
        }
        for (const name of Object.keys(runtime.config.brokers ?? {})) {
          await tryCheck(`broker ${name}`, () => checkBroker(name, runtime, add), add);
        }
      }
    }
    const failed = checks.filter((check) => check.result === 'fail').length;
    this.print(failed === 0 ? 'All checks passed.' : `${failed} of ${checks.length} checks failed.`);
    return failed === 0 ? { data: { checks } } : { code: 'check_failed', data: { checks }, exit: 1 };
  }

  #show({ name, result, message, next = [] }: Check): void {
    const paint = { ok: this.colors.green, warn: this.colors.yellow, fail: this.colors.red }[result];
    this.print(`${paint(result.padEnd(4))}  ${name}: ${oneLine(message)}`);
    for (const action of next) this.print(`      -> ${oneLine(action)}`);
  }
}

/** A plugin that cannot be used fails everything that needs it in the same way. */
const isSameFailure = (one: Check, other: Check): boolean =>
  one.name === 'plugins' && one.result === 'fail' && one.message === other.message;

const notChecked = ({ name }: Pick<Check, 'name'>, { name: cause }: Check): Check => ({
  name,
  result: 'warn',
  message: `not checked, because of the failed check of ${cause}`,
});

function nodeCheck(): Check {
  const needed = manifest.engines.node.replace('>=', '');
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [neededMajor = 0, neededMinor = 0] = needed.split('.').map(Number);
  const enough = major > neededMajor || (major === neededMajor && minor >= neededMinor);
  return enough
    ? { name: 'node', result: 'ok', message: process.versions.node }
    : { name: 'node', result: 'fail', message: process.versions.node, next: [`Install Node ${needed} or later.`] };
}

/** What an AI agent that runs the command line may not do; undefined if none does. */
function agentCheck(runtime: Runtime): Check | undefined {
  const marker = agentMarker();
  if (marker === undefined) return undefined;
  const rest = isLocal(runtime) ? 'the environment is local' : 'it may not destroy data or decide requests here';
  return { name: 'agent', result: 'ok', message: `${marker} is set: an AI agent runs svc; ${rest}` };
}

function envCheck({ env, envFrom, protectedEnv, product }: Runtime): Check {
  const source = { argument: '--env', link: 'svc/config.json', SVC_ENV: 'SVC_ENV', config: 'the configuration' }[
    envFrom
  ];
  const guarded = protectedEnv ? ', protected: changes need --yes' : '';
  return { name: 'environment', result: 'ok', message: `${env} of ${product} (set by ${source}${guarded})` };
}

/** Checks the approval settings, if there are any. */
async function checkApprovals(
  { config, database }: Runtime,
  done: readonly Check[],
  add: (check: Check) => void,
): Promise<void> {
  const { approvals } = config;
  if (!approvals) return;
  const { store, callbackBase, callbackKey: key, decisions, server } = approvals;
  await tryCheck(
    'approvals',
    async () => {
      if (store) database(store.database);
      const setting = decisions ? 'approvals.decisions' : server ? 'approvals.server' : 'approvals.callbackBase';
      if (key !== undefined || callbackBase !== undefined || decisions || server) requireCallbackKey(setting, config);
      const failed = done.find(({ name, result }) => name === `database ${store?.database}` && result === 'fail');
      if (failed) return add(notChecked({ name: 'approvals' }, failed));
      const where = store ? `in the database ${store.database}` : 'in memory, lost when the process exits';
      add({
        name: 'approvals',
        result: store ? 'ok' : 'warn',
        message: `stored ${where}`,
        ...(!store && { next: SET_STORE }),
      });
    },
    add,
  );
}

/** Connects to the broker, and publishes nothing. */
async function checkBroker(name: string, runtime: Runtime, add: (check: Check) => void): Promise<void> {
  const broker = await runtime.broker(name);
  const check = { name: `broker ${name}` };
  if (!broker.check) {
    add({ ...check, result: 'ok', message: 'configured; its plugin has no check of the connection' });
    return;
  }
  try {
    await broker.check(AbortSignal.timeout(BROKER_TIMEOUT_MS));
    add({ ...check, result: 'ok', message: 'connected; doctor publishes nothing' });
  } catch (error) {
    const advice = isSvcError(error) ? error.next : [];
    const next =
      advice.length > 0 ? advice : ['Start the server, or correct the URL of the broker in the configuration.'];
    add({ ...check, result: 'fail', message: isSvcError(error) ? describeError(error) : errorMessage(error), next });
  } finally {
    await broker.close();
  }
}

const BROKER_TIMEOUT_MS = 5_000;

const SET_STORE = ["Set a database: approvals: { store: { database: 'main' } }"];
