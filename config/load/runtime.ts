import { resolve } from 'node:path';
import type { Broker, Channel } from '../../core/approval/channel.ts';
import type { SealSink } from '../../core/approval/seal/sink.ts';
import type { Connection, ConnectOptions, Dialect } from '../../core/dialect.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';
import type { PlanApprover } from '../../core/migration/plan-approver.ts';
import type { Target } from '../../core/migration/target.ts';
import { nearest } from '../../core/nearest.ts';
import type { Config, ConfigContext, ConfigFunction, DatabaseConfig } from '../define.ts';
import { parseDuration } from './approval-rules.ts';
import { type ChosenEnv, chooseEnv, databaseUrl, externalEnv, readLink } from './env.ts';
import { connectError, identifyDatabase } from './identify.ts';
import type { LoadSdk } from './import-module.ts';
import { lazyApprover } from './plan-approval.ts';
import { type LoadedPlugin, PluginHost } from './plugins.ts';
import { assertConfig } from './validate.ts';

export interface RuntimeOptions {
  /** Where the search for a configuration starts. Default: the working directory. */
  readonly cwd?: string | undefined;
  readonly configFile?: string | undefined;
  /** A configuration in code, in place of a file. `product` and `env` below are then its defaults. */
  readonly config?: Config | ConfigFunction | undefined;
  /** With `product`, enough for agents and gates where no svc.config is found. */
  readonly env?: string | undefined;
  readonly product?: string | undefined;
}

/** A valid configuration in one environment. Plugins and drivers are loaded on first use. */
export interface Runtime {
  /** The folder of the configuration. */
  readonly root: string;
  readonly file?: string;
  readonly config: Config;
  readonly product: string;
  readonly env: string;
  readonly envFrom: ChosenEnv['from'];
  /** Whether commands that change a database need `--yes`. */
  readonly protectedEnv: boolean;
  /** Database tags in the configuration's order. */
  readonly databases: readonly string[];
  kernel(): Promise<Kernel>;
  /** The configured plugins, and the built-in dialects, channels and brokers that the configuration uses. */
  plugins(): Promise<readonly LoadedPlugin[]>;
  /** Throws `database_unknown`. */
  database(tag: string): DatabaseConfig;
  dialectOf(tag: string): Promise<Dialect>;
  /** Returns a registered value: `find('models', 'openai')`. Throws `name_unknown`. */
  readonly find: PluginHost['find'];
  /** Includes the password. Throws `env_unknown`. */
  urlOf(tag: string): string;
  /** Throws `database_shared` if another tag of this runtime is the same physical database. */
  connect(tag: string, options?: ConnectOptions): Promise<Target>;
  /** Returns the runtime's one broker with this configured name. Throws `name_unknown`. */
  broker(name: string): Promise<Broker>;
  /** Creates the channel with this name in `approvals.channels`. Throws `name_unknown`. */
  channel(name: string): Promise<Channel>;
  /** Creates the sink with this name in `approvals.seals.sinks`. Throws `name_unknown`. */
  sealSink(name: string): Promise<SealSink>;
  /** Closes every open connection and aborts those that are still connecting. */
  close(): Promise<void>;
}

const WAIT_FOR_IT = 'To wait for it: options: { busyTimeoutMs: 60_000 } next to the URL of the database.';

/** Finds, loads and validates the configuration, and selects the environment. Does not connect. */
export async function loadRuntime(
  options: RuntimeOptions,
  loadSdk: LoadSdk,
  loadApprover?: LoadApprover,
): Promise<Runtime> {
  const cwd = resolve(options.cwd ?? '.');
  const found = options.config === undefined ? await locate(cwd, options, loadSdk) : undefined;
  const root = found?.root ?? cwd;
  const link = found && readLink(root);
  const external = externalEnv(options.env, link);
  const context = { env: external?.env };
  const value = found ? await found.load(context) : await configInCode(options, context);
  const config = assertConfig(value, found?.file);
  const chosen = chooseEnv(external, config, found?.file);
  const product = resolveProduct([options.product, config.product, link?.product], found?.file);
  return createRuntime({ root, ...(found && { file: found.file }), config, product, chosen, loadSdk, loadApprover });
}

/** What makes the approver of a database, in an environment with `approval`. */
export type LoadApprover = () => Promise<new (runtime: Runtime, database: string) => PlanApprover>;

interface Located {
  readonly file: string;
  readonly root: string;
  load(context: ConfigContext): Promise<unknown>;
}

/** Undefined without a file, if the caller names the product: agents and gates need no more than that and an env. */
async function locate(
  cwd: string,
  { configFile, product }: RuntimeOptions,
  loadSdk: LoadSdk,
): Promise<Located | undefined> {
  const { findConfig, loadConfigFile, loadDotEnv, locateConfig } = await import('./config-file.ts');
  if (configFile === undefined && product !== undefined && findConfig(cwd) === undefined) return undefined;
  const { file, root } = locateConfig(cwd, configFile);
  await loadDotEnv(root);
  return { file, root, load: (context) => loadConfigFile(file, context, loadSdk) };
}

/** `product` and `env` next to a configuration in code are its defaults. */
function configInCode({ config, product, env }: RuntimeOptions, context: ConfigContext): unknown {
  if (typeof config === 'function') return config(context);
  // Spread, a text would become its characters: the validation names what is not an object.
  if (typeof config === 'string' || Array.isArray(config)) return config;
  return { ...(product !== undefined && { product }), ...(env !== undefined && { env }), ...config };
}

function resolveProduct(names: readonly (string | undefined)[], where: string | undefined): string {
  const [product, ...others] = [...new Set(names.filter((name) => name !== undefined))];
  if (product !== undefined && others.length === 0) return product;
  throw new SvcError(
    'config_invalid',
    product === undefined ? 'No product is set.' : `Two products are set: "${product}" and "${others[0]}".`,
    {
      why:
        product === undefined
          ? 'The history of each database records the product.'
          : 'The arguments, the configuration and svc/config.json must name the same product.',
      next: [
        product === undefined
          ? "Add product: '<name>' to the configuration."
          : 'Use the same product in the configuration and in svc/config.json.',
      ],
      ...(where !== undefined && { where }),
    },
  );
}

interface RuntimeSettings {
  readonly root: string;
  readonly file?: string;
  readonly config: Config;
  readonly product: string;
  readonly chosen: ChosenEnv;
  readonly loadSdk: LoadSdk;
  readonly loadApprover: LoadApprover | undefined;
}

function createRuntime(settings: RuntimeSettings): Runtime {
  const { root, file, config, product, loadSdk, loadApprover } = settings;
  const { env, from } = settings.chosen;
  const host = new PluginHost(config, { root, ...(file !== undefined && { file }) }, loadSdk);
  const databases = Object.keys(config.databases ?? {});
  const open = new Set<Connection>();
  const opening = new Set<Promise<Target>>();
  let closing = new AbortController();
  const used = new Map<string, string>();
  const brokers = new Map<string, Promise<Broker>>();
  const approvers = new Set<PlanApprover>();

  const database = (tag: string): DatabaseConfig => {
    const found = databases.includes(tag) ? config.databases?.[tag] : undefined;
    if (found) return found;
    const near = nearest(tag, databases);
    throw new SvcError('database_unknown', `No database has the tag "${tag}".`, {
      why: `Configured: ${databases.join(', ') || 'none'}.`,
      next: [
        near
          ? `Did you mean "${near}"?`
          : `Add databases.${tag} to ${file === undefined ? 'svc.config, or to the config of the client' : 'the configuration'}.`,
      ],
      ...(file !== undefined && { where: file }),
    });
  };
  const dialectOf = async (tag: string): Promise<Dialect> => {
    const { dialect } = database(tag);
    return host.find('dialects', dialect);
  };
  const urlOf = (tag: string): string => databaseUrl(config, tag, database(tag), env, root);

  const connect = async (tag: string, options: ConnectOptions): Promise<Target> => {
    const { schema, schemas, keep, options: configured } = database(tag);
    const url = urlOf(tag);
    const dialect = await dialectOf(tag);
    const kernel = await host.kernel();
    assertNotShared(
      used,
      `${dialect.name} ${identifyDatabase(kernel, dialect, url)} ${schema ?? schemas?.[0] ?? ''}`,
      tag,
    );
    const { hooks } = kernel;
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
    const where = { ...(schema !== undefined && { schema }), ...(schemas !== undefined && { schemas }) };
    const settings = { root, ...configured, ...where, ...options, signal };
    const connecting = dialect.connect(url, settings).catch((thrown) => {
      const error = signal.aborted ? thrown : connectError(kernel, dialect, thrown);
      // A caller with a time of its own replaces the one in the configuration.
      const canWait = isSvcError(error) && error.code === 'database_in_use' && options.busyTimeoutMs === undefined;
      throw canWait ? error.with({ next: [...error.next, WAIT_FOR_IT] }) : error;
    });
    const connection = tracked(await connecting, open);
    const approver = approverOf(tag);
    const dialects = await host.names('dialects');
    const keepMs = keep === undefined ? undefined : parseDuration(keep);
    return {
      ...{ database: tag, product, env, dialect, connection, hooks, dialects },
      ...(keepMs !== undefined && { keepMs }),
      ...(approver && { approver }),
    };
  };

  const approverOf = (tag: string): PlanApprover | undefined => {
    const settings = config.environments?.[env]?.approval;
    if (!settings) return undefined;
    if (!loadApprover) throw new Error('A runtime without approver cannot connect to an environment with approval.');
    const approver = lazyApprover(settings, async () => new (await loadApprover())(runtime, tag));
    approvers.add(approver);
    return approver;
  };

  const broker = async (name: string): Promise<Broker> => {
    const { type, ...options } = entryOf('broker', 'brokers', config.brokers, name);
    const createBroker = await host.find('brokers', type);
    return locatedAt(`brokers.${name}`, () => createBroker(options));
  };

  const runtime: Runtime = {
    root,
    ...(file !== undefined && { file }),
    config,
    product,
    env,
    envFrom: from,
    protectedEnv: config.environments?.[env]?.protected === true,
    databases,
    kernel: () => host.kernel(),
    async plugins() {
      await host.kernel();
      const used = {
        dialects: databases.map((tag) => database(tag).dialect),
        channels: Object.values(config.approvals?.channels ?? {}).map(({ type }) => type),
        brokers: Object.values(config.brokers ?? {}).map(({ type }) => type),
        sealSinks: Object.values(config.approvals?.seals?.sinks ?? {}).map(({ type }) => type),
      };
      for (const registry of ['dialects', 'channels', 'brokers', 'sealSinks'] as const)
        for (const name of new Set(used[registry])) await host.find(registry, name);
      return host.loaded;
    },
    database,
    dialectOf,
    find: (registry, name) => host.find(registry, name),
    urlOf,
    connect(tag, options = {}) {
      const connecting = connect(tag, options);
      opening.add(connecting);
      const settled = () => opening.delete(connecting);
      connecting.then(settled, settled);
      return connecting;
    },
    broker(name) {
      const opened = brokers.get(name) ?? broker(name);
      brokers.set(name, opened);
      opened.catch(() => brokers.delete(name));
      return opened;
    },
    async channel(name) {
      const { type, ...options } = entryOf('channel', 'approvals.channels', config.approvals?.channels, name);
      const createChannel = await host.find('channels', type);
      return locatedAt(`approvals.channels.${name}`, () => createChannel(options));
    },
    async sealSink(name) {
      const { seals } = config.approvals ?? {};
      const { type, ...options } = entryOf('sink', 'approvals.seals.sinks', seals?.sinks, name);
      const createSink = await host.find('sealSinks', type);
      return locatedAt(`approvals.seals.sinks.${name}`, () => createSink({ root, ...options }));
    },
    async close() {
      await Promise.all([...approvers].map((approver) => approver.close()));
      closing.abort();
      closing = new AbortController();
      await Promise.allSettled(opening);
      await Promise.all([...open].map((connection) => connection.close()));
      await Promise.allSettled([...brokers.values()].map(async (opened) => (await opened).close()));
      brokers.clear();
    },
  };
  return runtime;
}

function entryOf<T>(
  what: string,
  where: string,
  entries: Readonly<Record<string, T>> | undefined = {},
  name: string,
): T {
  const found = Object.hasOwn(entries, name) ? entries[name] : undefined;
  if (found) return found;
  const near = nearest(name, Object.keys(entries));
  throw new SvcError('name_unknown', `No ${what} is named "${name}".`, {
    why: `Configured: ${Object.keys(entries).join(', ') || 'none'}.`,
    next: [near ? `Did you mean "${near}"?` : `Add ${where}.${name} to the configuration.`],
  });
}

/** Runs a plugin's factory, which does not know where its options are. */
function locatedAt<T>(where: string, create: () => T): T {
  try {
    return create();
  } catch (error) {
    if (!isSvcError(error) || error.code !== 'config_invalid' || error.where !== undefined) throw error;
    throw error.with({ where });
  }
}

function assertNotShared(used: Map<string, string>, physical: string, tag: string): void {
  const other = used.get(physical) ?? tag;
  if (other !== tag) {
    throw new SvcError('database_shared', `"${other}" and "${tag}" are the same database.`, {
      why: 'Each tag has its own history, and two histories in one database would conflict.',
      next: ['Use one tag, or a separate database or schema for each.'],
      details: { databases: [other, tag] },
    });
  }
  used.set(physical, tag);
}

/** Tracks the connection until it is closed. Closing it twice has no further effect. */
function tracked(connection: Connection, open: Set<Connection>): Connection {
  const close = connection.close.bind(connection);
  let closing: Promise<void> | undefined;
  connection.close = () => {
    open.delete(connection);
    closing ??= close();
    return closing;
  };
  open.add(connection);
  return connection;
}
