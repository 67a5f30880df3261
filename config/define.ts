/**
 * The types of `svc.config`.
 * @module @svc/sdk/config
 */

import type { Condition, ReasonRequired } from '../core/approval/rule.ts';
import type { Plugin } from '../core/kernel.ts';
import type { KeyOf, ValueAt } from '../core/widened.ts';

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
  /** The level of rules of `svc db migrate lint`, by id or name. */
  readonly lint?: LintLevels;
  /** Plugin objects, package names, or paths relative to the config file. Built-in plugins are not listed. */
  readonly plugins?: readonly (string | Plugin)[];
}

export type BuiltinDialect = 'postgresql' | 'mysql' | 'mariadb' | 'mongodb' | 'dynamodb' | 'cassandra';

/**
 * The dialects that a configuration may name. The package of a dialect adds its own:
 * `declare module '@svc/sdk' { interface Dialects { abacus: true } }`.
 */
export interface Dialects extends Readonly<Record<BuiltinDialect, true>> {}

export interface DatabaseConfig {
  /** The registered name of a dialect. One that is unknown to TypeScript is added to `Dialects`. */
  readonly dialect: keyof Dialects;
  /** A string is the URL for the config's own `env`; a map contains a URL per env. A missing URL is an error only when used. */
  readonly url: string | undefined | { readonly [env: string]: string | undefined };
  /** PostgreSQL: the schema that contains the tables. */
  readonly schema?: string;
  /**
   * PostgreSQL: further schemas, with the one of `schema`, which is the first by default. A table of another one has its name before
   * its own: `billing.invoices`. @experimental
   */
  readonly schemas?: readonly string[];
  /**
   * Keeps what migrations drop for this long, such as `30d`, so that a rollback brings it back; `--keep` says it for one
   * run. Also what `db.schema` and engines drop. @experimental
   */
  readonly keep?: string;
  /** Passed to the dialect unchanged. */
  readonly options?: { readonly [option: string]: unknown };
}

export interface EnvironmentConfig {
  /** Commands that change a database of this environment need `--yes`. */
  readonly protected?: boolean;
  /** AI agents may destroy data and decide requests here. Default: true for `dev` and `test`, else false. */
  readonly local?: boolean;
  /** Levels in this environment, instead of those of the configuration. */
  readonly lint?: LintLevels;
  /** Migrations of this environment wait for people. Needs `approvals.store`. @experimental */
  readonly approval?: MigrationApprovalConfig;
}

/** Which plans wait for approval, and whose. @experimental */
export interface MigrationApprovalConfig {
  /**
   * `destructive` (default): plans with a statement that destroys data. `lossy`: also those that a rollback does not take
   * back completely. `always`: every plan. A decision about a migration that stopped halfway always waits.
   */
  readonly when?: 'destructive' | 'lossy' | 'always';
  /** A role of `approvals.roles`: one verified person of it decides. */
  readonly role: string;
  /** The time to decide, and after it the time to run, such as `30m`, `4h` or `2d`; default `8h`. */
  readonly timeout?: string;
}

export interface LintLevels {
  readonly [rule: string]: 'error' | 'warning' | 'note' | 'off';
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
  /** At least 32 bytes. Signs callback tokens and yields the secrets of webhooks. Keep it secret. */
  readonly callbackKey?: string | undefined;
  /** Channels that receive every request, in addition to those of its agent. `type` is a registered name; the rest are options. */
  readonly channels?: { readonly [name: string]: { readonly type: string; readonly [option: string]: unknown } };
  /** Consumes decisions from the queue `svc.approvals.decisions.<product>.<env>` of this broker. Each decision needs the token of its request. */
  readonly decisions?: { readonly broker: string };
  /** Verifies people by the header of a proxy that authenticates them. A signed one needs the package `jose`. */
  readonly proxy?: ProxyConfig | PlainProxyConfig;
  /** Lets people with a token decide over HTTP: `svc login`, then `--server` of the approval commands. */
  readonly server?: ServerConfig;
  /**
   * Verifies people by OpenID Connect: they sign in on the page of a request, or bring an ID token. Needs the packages
   * `openid-client` and `jose`.
   */
  readonly oidc?: OidcConfig;
  /** By name, who has the role: `group:<name>` and `user:<id>`. */
  readonly roles?: { readonly [role: string]: readonly string[] };
  /** Who may decide. The first rule that matches a call is stored with its request; without one, one decision is enough. */
  readonly rules?: readonly ApprovalRuleConfig[];
  /** Seals the audit, so that `svc approvals verify` finds what is changed in the database. */
  readonly seals?: SealsConfig;
  readonly webhook?: {
    readonly context?: boolean;
    /**
     * By URL: each secret signs, so that receivers can verify with any. Default: a secret derived from `callbackKey`, which
     * `svc approvals secret <url>` prints.
     */
    readonly secrets?: { readonly [url: string]: readonly (string | undefined)[] };
  };
}

/** Signatures over the audit, kept where those who can write to the database cannot change them. @experimental */
export interface SealsConfig {
  /**
   * The private Ed25519 key that signs: PKCS #8 as PEM, or the base64 of its DER on one line. Keep it secret. Not needed
   * to verify.
   */
  readonly key?: string | undefined;
  /**
   * Public keys, as `svc approvals seal --public-key` prints them: to verify without the private key, and what an earlier
   * one has signed.
   */
  readonly publicKeys?: readonly string[];
  /** How often `svc approvals serve` seals, from `1s` to `1d`; default `5m`. */
  readonly every?: string;
  /** Where seals are kept in addition to the store: one at least. `type` is a registered name; the rest are options. */
  readonly sinks: {
    readonly [name: string]: { readonly type: string; readonly [option: string]: unknown };
  };
}

/** Who may use the API for people, which is where the callback is. @experimental */
export interface ServerConfig {
  /** A role of `approvals.roles`: its people list, read and decide every request, as far as the rules let them. */
  readonly role: string;
  /** The `callbackBase` of each environment that has an inbox of its own: the list has links to them. */
  readonly environments?: { readonly [env: string]: string | undefined };
}

/** A proxy in front of the callback that says who is logged in, in a JSON Web Token. @experimental */
export interface ProxyConfig {
  /** The header with the token, such as `cf-access-jwt-assertion`. */
  readonly header: string;
  /** The URL of its keys, a JSON Web Key Set: https, or http on a loopback address. */
  readonly jwks: string;
  readonly issuer: string;
  /** The token must be for one of these. */
  readonly audience: string | readonly string[];
  /** Those with which the proxy signs. */
  readonly algorithms: readonly TokenAlgorithm[];
  /** The claim with the id of the person; default `email`. */
  readonly id?: string;
  /** The claim with their groups. Default: none. */
  readonly groups?: string;
}

/** A proxy whose headers are not signed: they count only from its own addresses, and with a secret. @experimental */
export interface PlainProxyConfig {
  /** The header with the id of the person, such as `x-forwarded-email`. */
  readonly header: string;
  /** The header with their groups, separated by commas. Default: none. */
  readonly groupsHeader?: string;
  /** A header that the proxy adds. At least 32 characters. */
  readonly secret: { readonly header: string; readonly value: string | undefined };
  /** Addresses of the proxy, or ranges: `10.0.0.7`, `10.1.0.0/16`, `fd00::/8`. */
  readonly peers: readonly string[];
}

/** A provider of OpenID Connect, such as Keycloak, and this application as one of its clients. @experimental */
export interface OidcConfig {
  /** Its URL, as the tokens name it: https, or http on a loopback address. Its metadata are read from there. */
  readonly issuer: string;
  /** The client that is registered for this application, with the redirect URI `{callbackBase}/approvals/signed-in`. */
  readonly clientId: string;
  /** Of a confidential client. Keep it secret. */
  readonly clientSecret?: string | undefined;
  /** The claim with the id of the person; default `email`. */
  readonly id?: string;
  /** The claim with their groups. Default: none. */
  readonly groups?: string;
  /** Those with which the provider signs ID tokens; default `RS256`. */
  readonly algorithms?: readonly TokenAlgorithm[];
  /** What is asked for at sign-in; default `openid` and `email`. `openid` is always asked for. */
  readonly scopes?: readonly string[];
  /**
   * The public client of `svc login`, with the redirect URI `http://127.0.0.1/signed-in` at any port. Default: `clientId`,
   * if it has no secret.
   */
  readonly cliClientId?: string;
  /** Other clients whose ID tokens are accepted. */
  readonly audience?: string | readonly string[];
}

/** Signatures with a key that only the issuer of a token has. @experimental */
export type TokenAlgorithm =
  | 'RS256'
  | 'RS384'
  | 'RS512'
  | 'PS256'
  | 'PS384'
  | 'PS512'
  | 'ES256'
  | 'ES384'
  | 'ES512'
  | 'EdDSA';

/** Who may decide the calls that it matches. @experimental */
export interface ApprovalRuleConfig {
  /** Default: every call. */
  readonly match?: {
    readonly tool?: string | readonly string[];
    readonly agent?: string | readonly string[];
    /** By parameter: a value that it equals, or comparisons that are all true. */
    readonly where?: { readonly [parameter: string]: string | number | boolean | Condition };
  };
  /** The approvals that are needed, each by another person; `count` is 1 by default. */
  readonly approve: readonly { readonly role: string; readonly count?: number }[];
  /** The number of people of these roles whose rejection rejects the request; default 1. */
  readonly deny?: number;
  /** Who never counts: `requester`, `user:<id>`, `group:<name>`. The requester does not count in any case. */
  readonly not?: readonly string[];
  /** When a reason is required. */
  readonly reason?: ReasonRequired;
  /** Counts people whom nobody verified: they have every role, and all of them together count as one. */
  readonly unverified?: boolean;
  /** A role of which one person may decide alone, with a reason; the record says that it was an override. */
  readonly override?: string;
  /** A role whose people may let later calls like an approved one run: `svc approvals allow`. */
  readonly standing?: string;
  /** The time to decide, such as `30m`, `4h` or `2d`, in place of the agent's `approvalTimeout`. */
  readonly expires?: string;
  /** When channels are reminded of a request that still waits: `10m` after it was made, once each. */
  readonly remind?: string | readonly string[];
  /** People of the role `to` may decide too, in any role, once a request has waited for `after`. Channels are notified. */
  readonly escalate?: readonly { readonly after: string; readonly to: string }[];
}

export interface ConfigContext {
  /** The environment from `--env`, the link or SVC_ENV; undefined if the config's own `env` applies. */
  readonly env: string | undefined;
}

export type ConfigFunction = (context: ConfigContext) => Config | Promise<Config>;

/**
 * `T`, with a message as the type of each property that `Shape` lacks: TypeScript finds unknown properties in an object
 * literal, but not in one that a function returns.
 */
type Checked<T, Shape> = T extends readonly unknown[] | ((...args: never) => unknown)
  ? T
  : T extends object
    ? {
        [K in keyof T]: K extends KeyOf<Shape>
          ? Checked<T[K], Extract<ValueAt<Shape, K>, object>>
          : `${K & string} is not a setting`;
      }
    : T;

type CheckedFunction<T> = (context: ConfigContext) => Checked<T, Config> | Promise<Checked<T, Config>>;

/** Returns the configuration unchanged; checks its types. */
export function defineConfig<T extends Config>(config: Config | CheckedFunction<T>): Config | ConfigFunction {
  // Only the type of a mistake is not a Config.
  return config as Config | ConfigFunction;
}
