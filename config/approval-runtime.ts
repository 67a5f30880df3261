import type { ApprovalSurroundings } from '../core/agent/human-in-loop.ts';
import { ApprovalDesk } from '../core/approval/desk.ts';
import { reconnecting, type StoreHome } from '../core/approval/home.ts';
import type { Owner } from '../core/approval/tables.ts';
import type { Kernel } from '../core/kernel.ts';
import { loadMemoryStore } from './builtin.ts';
import type { Runtime } from './runtime.ts';

/** What gates and agents of one configuration share: where they keep their records, and who waits there. */
export interface ApprovalRuntime {
  readonly home: StoreHome;
  readonly kernel: Kernel;
  readonly desk: ApprovalDesk;
  readonly owner: Owner;
  close(): Promise<void>;
}

const opened = new WeakMap<Runtime, Promise<ApprovalRuntime>>();

/** The same for the same runtime. One that failed to open is tried again. */
export function loadApprovals(runtime: Runtime): Promise<ApprovalRuntime> {
  const known = opened.get(runtime);
  if (known) return known;
  const opening = open(runtime);
  opened.set(runtime, opening);
  opening.catch(() => opened.delete(runtime));
  return opening;
}

/** Leaves alone what was never opened. */
export async function closeApprovals(runtime: Runtime): Promise<void> {
  await (await opened.get(runtime)?.catch(() => undefined))?.close();
}

async function open(runtime: Runtime): Promise<ApprovalRuntime> {
  const { product, env } = runtime;
  const kernel = await runtime.kernel();
  const tag = runtime.config.approvals?.store?.database;
  const home = tag === undefined ? await inMemory(env) : inDatabase(runtime, tag);
  const owner = { product, env, database: tag ?? 'memory' };
  try {
    const desk = await ApprovalDesk.open({ home, kernel, owner, warn, log });
    return {
      home,
      kernel,
      desk,
      owner,
      async close() {
        await desk.close();
        await home.close();
      },
    };
  } catch (error) {
    await home.close();
    throw error;
  }
}

function inDatabase(runtime: Runtime, tag: string): StoreHome {
  runtime.database(tag);
  return reconnecting(async () => (await runtime.connect(tag)).connection);
}

async function inMemory(env: string): Promise<StoreHome> {
  if (env !== 'dev') {
    warn(
      `Approvals of "${env}" are kept in memory: a restart forgets them and no other process can decide. Set approvals.store in svc.config.`,
    );
  }
  const { MemoryStore } = await loadMemoryStore();
  return new MemoryStore();
}

function warn(message: string): void {
  process.emitWarning(message, 'SvcWarning');
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** What a definition may lean on in this configuration. */
export function surroundings({ config }: Runtime): ApprovalSurroundings {
  const { callbackBase, callbackKey } = config.approvals ?? {};
  return {
    brokers: Object.keys(config.brokers ?? {}),
    callbackBase: callbackBase !== undefined,
    callbackKey: callbackKey !== undefined,
  };
}
