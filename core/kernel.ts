import type { ModelFactory } from './agent/model.ts';
import type { BrokerFactory, ChannelFactory } from './approval/channel.ts';
import { createApprovalHooks } from './approval/policy.ts';
import type { SealSinkFactory } from './approval/seal/sink.ts';
import type { Dialect } from './dialect.ts';
import type { LintRuleSet } from './lint/rule.ts';
import { createMigrationHooks } from './migration/target.ts';
import { OwnedRegistry, type Registry } from './registry.ts';

/** Version of the plugin contract. Plugins built for another version are rejected. */
export const PLUGIN_API_VERSION = 1;

export interface Plugin {
  readonly name: string;
  readonly api: number;
  /** Registers values and taps hooks. Performs no I/O. */
  apply(kernel: Kernel): void;
}

/** Hooks and registries. Everything specific to a database, a transport or a model is a plugin. */
export class Kernel {
  readonly hooks = { ...createApprovalHooks(), ...createMigrationHooks() } as const;
  readonly dialects: Registry<Dialect> = new OwnedRegistry('dialect');
  readonly channels: Registry<ChannelFactory> = new OwnedRegistry('channel');
  readonly brokers: Registry<BrokerFactory> = new OwnedRegistry('broker');
  readonly sealSinks: Registry<SealSinkFactory> = new OwnedRegistry('sink of seals');
  readonly models: Registry<ModelFactory> = new OwnedRegistry('model provider');
  readonly lintRules: Registry<LintRuleSet> = new OwnedRegistry('set of lint rules');
}
