/**
 * What `svc.config` is written with.
 * @module @svc/sdk/config
 */

import type { Plugin } from '../core/kernel.ts';

/** What `svc.config` says. */
export interface Config {
  /** Names the product in the history of every database: a database of another product is refused. */
  readonly product?: string;
  /** The environment where neither `--env`, the link nor SVC_ENV names one. */
  readonly env?: string;
  readonly databases?: { readonly [tag: string]: DatabaseConfig };
  readonly environments?: { readonly [env: string]: EnvironmentConfig };
  readonly brokers?: { readonly [name: string]: BrokerConfig };
  readonly approvals?: ApprovalsConfig;
  /** Objects, package names, or paths from the config file. Built-in dialects need no line. */
  readonly plugins?: readonly (string | Plugin)[];
}

export interface DatabaseConfig {
  /** A name a plugin registers: `postgresql` is built in. */
  readonly dialect: string;
  /** A string serves only the config's own `env`; a map gives one per env. A missing one is refused when it is needed. */
  readonly url: string | undefined | { readonly [env: string]: string | undefined };
  /** PostgreSQL: the schema in which the tables live. */
  readonly schema?: string;
  /** Handed to the dialect as they are. */
  readonly options?: { readonly [option: string]: unknown };
}

export interface EnvironmentConfig {
  /** Whatever changes a database of this environment needs `--yes`. */
  readonly protected?: boolean;
}

export interface BrokerConfig {
  readonly type: string;
  readonly url?: string | undefined;
  readonly [option: string]: unknown;
}

/** @experimental */
export interface ApprovalsConfig {
  readonly store?: { readonly database: string };
  /** Where the callback is served; https, or http on a loopback address. */
  readonly callbackBase?: string | undefined;
  /** Never shared. */
  readonly callbackKey?: string | undefined;
  /** Ways that every request goes, beside those its agent names: `type` is what a plugin registers, the rest its options. */
  readonly channels?: { readonly [name: string]: { readonly type: string; readonly [option: string]: unknown } };
  /** Takes decisions from `svc.approvals.decisions.<product>.<env>` of that broker, each with its request's token. */
  readonly decisions?: { readonly broker: string };
  readonly webhook?: {
    readonly context?: boolean;
    /** Per URL: the first signs, all verify. */
    readonly secrets?: { readonly [url: string]: readonly (string | undefined)[] };
  };
}

export interface ConfigContext {
  /** What `--env`, the link or SVC_ENV says; undefined where the config's own `env` decides. */
  readonly env: string | undefined;
}

export type ConfigFunction = (context: ConfigContext) => Config | Promise<Config>;

/** Gives the configuration back as it is: it is there for the types. */
export function defineConfig(config: Config): Config;
export function defineConfig(config: ConfigFunction): ConfigFunction;
export function defineConfig(config: Config | ConfigFunction): Config | ConfigFunction {
  return config;
}
