import { Svc } from '../../config/sdk/index.ts';
import type { Plugin } from '../../core/kernel.ts';

export type EngineName = 'dbos' | 'temporal';

export interface WorkerSettings {
  readonly engine: EngineName;
  readonly engineUrl: string;
  readonly queue: string;
  readonly storeUrl: string;
  /** The file with each execution that paid, and the amount. */
  readonly effects: string;
  /** The code of the workflows of Temporal. */
  readonly code?: string | undefined;
  readonly approvalTimeout?: number | undefined;
  /** What differs from the worker before. */
  readonly difference?: 'schema' | 'name' | 'kill after the effect' | undefined;
}

export interface PayoutInput {
  readonly calls: readonly { readonly toolCallId: string; readonly parameters: { readonly amount: number } }[];
  /** One after the other, in place of all at once. */
  readonly inTurn?: boolean;
  readonly checkMs?: number;
  /** The engine ends the workflow then. */
  readonly timeoutMs?: number;
}

export interface Payout {
  readonly status: string;
  readonly text: string;
  readonly requestId?: string;
}

/** What a program does with the engine that starts workflows. */
export interface EngineClient {
  start(id: string, input: PayoutInput): Promise<unknown>;
  result(id: string): Promise<readonly Payout[]>;
  cancel(id: string): Promise<unknown>;
  resume?(id: string): Promise<unknown>;
  forge(id: string, toolCallId: string): Promise<unknown>;
  wake?(id: string, run: string, signal: string): Promise<unknown>;
  checks?(id: string): Promise<number>;
  activities?(id: string): Promise<number>;
  /** Why an activity that waits to be retried has failed. */
  failure?(id: string): Promise<string | undefined>;
  close(): Promise<void>;
}

export const openSvc = (url: string, plugins: readonly Plugin[] = []): Svc =>
  new Svc({
    config: {
      product: 'shop',
      env: 'dev',
      databases: { main: { dialect: 'postgresql', url } },
      approvals: { store: { database: 'main' } },
      plugins,
    },
  });
