import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Svc } from '../../config/sdk/index.ts';
import { APPROVAL_STATUSES, type ApprovalRecord } from '../../core/approval/request.ts';
import { wakeUps } from '../../plugins/frameworks/temporal.ts';
import { folder } from '../kit/folder.ts';
import { installFolder } from '../kit/install-folder.ts';
import { freshDatabase, type PostgresqlTestDatabase, unavailable } from '../kit/postgresql.ts';
import { waitUntil } from '../suites/wait-until.ts';
import {
  type EngineClient,
  type EngineName,
  openSvc,
  type Payout,
  type PayoutInput,
  type WorkerSettings,
} from './run.ts';
import { startTemporal, temporalUnavailable } from './temporal-server.ts';

const own = new URL('./', import.meta.url);

/** Why no engine can be tried, or undefined. */
export const missing = (await unavailable()) ?? installFolder(own, '@temporalio/worker');
/** Why an engine cannot be tried. */
export const skipped: Readonly<Record<EngineName, string | undefined>> = {
  dbos: missing,
  temporal: missing ?? temporalUnavailable(),
};

const children = new Set<ChildProcess>();
const databases: PostgresqlTestDatabase[] = [];

export async function database(): Promise<PostgresqlTestDatabase> {
  const made = await freshDatabase();
  databases.push(made);
  return made;
}

export async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  children.delete(child);
}

const inheritErrors = ['ignore', 'pipe', 'inherit'] as const;
export const nodeFlags = ['--no-deprecation', '--import', 'tsx'];

async function startWorker(settings: WorkerSettings): Promise<ChildProcess> {
  const path = join(folder({ settings }), 'settings');
  const args = [...nodeFlags, new URL('worker.ts', own).pathname, path];
  const child = spawn(process.execPath, args, { stdio: [...inheritErrors] });
  children.add(child);
  let output = '';
  child.stdout?.on('data', (chunk) => {
    output += chunk;
  });
  await waitUntil(() => output.includes('ready\n') || child.exitCode !== null, 'the worker did not start');
  assert.ok(output.includes('ready\n'), `the worker exited with ${child.exitCode}`);
  return child;
}

interface EngineModule {
  connect(options: { readonly url: string; readonly queue: string }): Promise<EngineClient>;
  bundle?(): Promise<string>;
}

const load = (engine: EngineName): Promise<EngineModule> => import(new URL(`${engine}.mjs`, own).href);

/** A server of Temporal, the code of its workflows, and the store of all gates. */
async function openShared() {
  const store = await database();
  if (skipped.temporal !== undefined) return { address: '', code: '', store, stop: () => {} };
  const { address, stop } = await startTemporal();
  return { address, stop, code: await (await load('temporal')).bundle?.(), store };
}

let sharing: ReturnType<typeof openShared> | undefined;
export const shared = () => {
  sharing ??= openShared();
  return sharing;
};

async function newSettings(engine: EngineName): Promise<WorkerSettings> {
  const { address, code, store } = await shared();
  const engineUrl = engine === 'temporal' ? address : (await database()).url;
  return { engine, engineUrl, queue: randomUUID(), code, storeUrl: store.url, effects: join(folder(), 'effects') };
}

async function openSteady(engine: EngineName): Promise<WorkerSettings> {
  const settings = await newSettings(engine);
  await startWorker(settings);
  return settings;
}

/** The settings of a worker that no test kills. */
const steady = new Map<EngineName, Promise<WorkerSettings>>();
function steadyWorker(engine: EngineName): Promise<WorkerSettings> {
  const settings = steady.get(engine) ?? openSteady(engine);
  steady.set(engine, settings);
  return settings;
}

export async function closeAll(): Promise<void> {
  await Promise.all([...children].map(kill));
  (await sharing)?.stop();
  await Promise.all(databases.map((one) => one.drop()));
}

/** A workflow of an engine, and a client that decides. */
export class Place {
  readonly client: EngineClient;
  readonly svc: Svc;
  readonly id = `payout-${randomUUID()}`;
  readonly #settings: WorkerSettings;
  readonly #started: ChildProcess[] = [];

  constructor(client: EngineClient, settings: WorkerSettings, isSignalled: boolean) {
    this.client = client;
    this.svc = openSvc(settings.storeUrl, client.wake && isSignalled ? [wakeUps(client.wake)] : []);
    this.#settings = settings;
  }

  async worker(different: Pick<WorkerSettings, 'approvalTimeout' | 'difference'> = {}): Promise<ChildProcess> {
    const child = await startWorker({ ...this.#settings, ...different });
    this.#started.push(child);
    return child;
  }

  /** What was paid. */
  get effects(): readonly string[] {
    const { effects } = this.#settings;
    if (!existsSync(effects)) return [];
    const lines = readFileSync(effects, 'utf8').trim().split('\n');
    return lines.filter((line) => line.includes(this.id)).map((line) => line.split(' ')[1] ?? '');
  }

  async start(amounts: readonly number[], more: Partial<PayoutInput> = {}): Promise<void> {
    const calls = amounts.map((amount, at) => ({ toolCallId: `c${at + 1}`, parameters: { amount } }));
    await this.client.start(this.id, { calls, ...more });
  }

  async requests(): Promise<readonly ApprovalRecord[]> {
    const pages = APPROVAL_STATUSES.map((status) => this.svc.approvals.list({ status, newestFirst: true }));
    const records = (await Promise.all(pages)).flatMap((page) => page.records);
    return records.filter(({ executionId }) => executionId.includes(this.id));
  }

  /** The id of the request of a call, once it is stored. */
  async request(toolCallId: string): Promise<string> {
    let requestId = '';
    await waitUntil(async () => {
      requestId = (await this.requests()).find((request) => request.toolCallId === toolCallId)?.requestId ?? '';
      return requestId !== '';
    }, `${toolCallId} makes no request`);
    return requestId;
  }

  async approve(toolCallId: string, modifiedParams?: object): Promise<void> {
    const payload = { requestId: await this.request(toolCallId), modifiedParams };
    await this.svc.approvals.signal({ signal: 'approve', payload }, { actor: 'ann' });
  }

  /** Changes what is stored for the first call, as somebody with access to the store could. */
  async rewrite(member: string, value: number): Promise<void> {
    const { store } = await shared();
    const body = `jsonb_set(body::jsonb, '${member}', '${value}')`;
    await store.query(`UPDATE _svc_approvals SET body = ${body} WHERE "requestId" = '${await this.request('c1')}'`);
  }

  async reject(toolCallId: string): Promise<void> {
    const payload = { requestId: await this.request(toolCallId), reason: 'No.' };
    await this.svc.approvals.signal({ signal: 'reject', payload }, { actor: 'bob' });
  }

  async statuses(): Promise<readonly string[]> {
    return (await this.result()).map(({ status }) => status);
  }

  result(): Promise<readonly Payout[]> {
    return this.client.result(this.id);
  }

  async close(): Promise<void> {
    await Promise.all(this.#started.map(kill));
    await this.svc.close();
    await this.client.close();
  }
}

/** `hasWorkers`: the caller starts its workers. `isSilent`: no process signals a decision. */
export async function withPlace(
  engine: EngineName,
  { hasWorkers, isSilent }: { readonly hasWorkers?: true; readonly isSilent?: true },
  work: (place: Place) => Promise<void>,
): Promise<void> {
  const settings = hasWorkers ? await newSettings(engine) : await steadyWorker(engine);
  const { engineUrl: url, queue } = settings;
  const place = new Place(await (await load(engine)).connect({ url, queue }), settings, !isSilent);
  try {
    await work(place);
  } finally {
    await place.close();
  }
}
