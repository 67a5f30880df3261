import { AsyncSeriesHook } from 'tapable';
import type { ModelFactory } from './agent/model.ts';
import type { BrokerFactory, ChannelFactory } from './approval/channel.ts';
import type { ApprovalRecord, ApprovalRequest } from './approval/request.ts';
import type { DecisionReview, ToolCallReview } from './approval/review.ts';
import type { Dialect } from './dialect.ts';
import type { Migration } from './migration/migration.ts';
import { Registry } from './registry.ts';

/** Version of the plugin contract: a plugin built for another one is refused by name. */
export const API = 1;

export interface Plugin {
  readonly name: string;
  readonly api: number;
  /** Registers and taps; does no I/O. */
  apply(kernel: Kernel): void;
}

/** A migration that is about to be applied or rolled back; a throw stops the run before it. */
export interface MigrationStep {
  readonly database: string;
  readonly env: string;
  readonly direction: 'up' | 'down';
  readonly migration: Migration;
}

/** Hooks and registries, and nothing else: whatever knows a database, a transport or a model is a plugin. */
export class Kernel {
  readonly hooks = {
    beforeToolCall: new AsyncSeriesHook<[ToolCallReview]>(['review']),
    approvalRequested: new AsyncSeriesHook<[ApprovalRequest]>(['request']),
    beforeDecision: new AsyncSeriesHook<[DecisionReview]>(['review']),
    approvalDecided: new AsyncSeriesHook<[ApprovalRecord]>(['record']),
    'migration:up': new AsyncSeriesHook<[MigrationStep]>(['step']),
    'migration:down': new AsyncSeriesHook<[MigrationStep]>(['step']),
  } as const;
  readonly dialects = new Registry<Dialect>('dialect');
  readonly channels = new Registry<ChannelFactory>('channel');
  readonly brokers = new Registry<BrokerFactory>('broker');
  readonly models = new Registry<ModelFactory>('model provider');
}
