import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Svc } from '../../config/sdk/index.ts';
import type { ApprovalRequest } from '../../core/approval/request.ts';
import fileStore from '../kit/file-store.ts';

export interface Ended {
  readonly suspended: boolean;
  readonly state: string;
  /** The id of each call and what the model read as its result. */
  readonly received: readonly (readonly [string, string])[];
}

export interface FrameworkRun {
  start(signal?: AbortSignal): Promise<Ended>;
  resume(state: string, signal?: AbortSignal): Promise<Ended>;
  close?(): unknown;
}

export interface Host {
  open(options: object): Promise<FrameworkRun>;
}

export async function loadHost(name: string): Promise<Host> {
  const { default: host } = await import(new URL(`./${name}.mjs`, import.meta.url).href);
  return host as Host;
}

/** A client whose store is a file in the folder, which one process at a time can open. */
export function openClient(folder: string): Svc {
  const main = { dialect: 'file-store', url: `file-store://${join(folder, 'store.db')}` };
  const config = { product: 'shop', env: 'dev', plugins: [fileStore], databases: { main } };
  return new Svc({ config: { ...config, approvals: { store: { database: 'main' } } } as never });
}

/** What differs from the process that asked for approval. */
export type Difference = 'schema' | 'name' | 'kill after the effect';

/** An agent that calls `refund`, suspended while the call waits unless it says otherwise, and appends the amount to the file `effects` in the folder. */
export async function openRun(
  svc: Svc,
  host: string,
  folder: string,
  {
    difference,
    onRequested,
    wait = 'suspend',
  }: {
    difference?: Difference | undefined;
    onRequested?: (request: ApprovalRequest) => void;
    wait?: 'suspend' | 'hold';
  } = {},
): Promise<FrameworkRun> {
  return (await loadHost(host)).open({
    gate: svc.gate({ agentTag: 'payouts', humanInLoop: { enabled: true } }),
    calls: [{ id: 'c1', name: 'refund', args: { amount: 20, note: 'none' } }],
    executionId: 'exe_1',
    wait,
    onRequested,
    changedSchema: difference === 'schema',
    renamed: difference === 'name',
    refund: async ({ amount }: { amount: number }) => {
      appendFileSync(join(folder, 'effects'), `${amount}\n`);
      if (difference === 'kill after the effect') process.kill(process.pid, 'SIGKILL');
      return `paid ${amount}`;
    },
    lookup: async () => 'looked',
  });
}

export function effectsOf(folder: string): readonly string[] {
  const file = join(folder, 'effects');
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
}
