/**
 * The types of `svc.config`.
 * @module @svc/sdk/config
 */

import type { Plugin } from '../core/kernel.ts';

/** The contents of `svc.config`. */
export interface Config {
  /** Recorded in the history of every database; a database of another product is rejected. */
  readonly product?: string;
  /** The default environment, without `--env`, a link or SVC_ENV. */
  readonly env?: string;
  readonly databases?: { readonly [tag: string]: DatabaseConfig };
  readonly environments?: { readonly [env: string]: EnvironmentConfig };
  readonly brokers?: { readonly [name: string]: BrokerConfig };
  readonly approvals?: ApprovalsConfig;
  /** Plugin objects, package names, or paths relative to the config file. Built-in plugins are not listed. */
  readonly plugins?: readonly (string | Plugin)[];
}

export interface DatabaseConfig {
  /** The registered name of a dialect, such as the built-in `postgresql`. */
  readonly dialect: string;
  /** A string is the URL for the config's own `env`; a map contains a URL per env. A missing URL is an error only when used. */
  readonly url: string | undefined | { readonly [env: string]: string | undefined };
  /** PostgreSQL: the schema that contains the tables. */
  readonly schema?: string;
  /** Passed to the dialect unchanged. */
  readonly options?: { readonly [option: string]: unknown };
}

export interface EnvironmentConfig {
  /** Commands that change a database of this environment need `--yes`. */
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
  /** The public URL of the callback: https, or http on a loopback address. */
  readonly callbackBase?: string | undefined;
  /** Signs callback tokens. Keep it secret. */
  readonly callbackKey?: string | undefined;
  /** Channels that receive every request, in addition to those of its agent. `type` is a registered name; the rest are options. */
  readonly channels?: { readonly [name: string]: { readonly type: string; readonly [option: string]: unknown } };
  /** Consumes decisions from the queue `svc.approvals.decisions.<product>.<env>` of this broker. Each decision needs the token of its request. */
  readonly decisions?: { readonly broker: string };
  readonly webhook?: {
    readonly context?: boolean;
    /** By URL: the first secret signs, all of them verify. */
    readonly secrets?: { readonly [url: string]: readonly (string | undefined)[] };
  };
}

export interface ConfigContext {
  /** The environment from `--env`, the link or SVC_ENV; undefined if the config's own `env` applies. */
  readonly env: string | undefined;
}

export type ConfigFunction = (context: ConfigContext) => Config | Promise<Config>;

/** Returns the configuration unchanged; checks its types. */
export function defineConfig(config: Config): Config;
export function defineConfig(config: ConfigFunction): ConfigFunction;
export function defineConfig(config: Config | ConfigFunction): Config | ConfigFunction {
  return config;
}
