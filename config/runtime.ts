import { resolve } from 'node:path';
import type { Broker } from '../core/approval/channel.ts';
import type { Adapter } from '../core/database/adapter.ts';
import type { Connection, ConnectOptions, Dialect } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';
import type { Kernel } from '../core/kernel.ts';
import { nearest } from '../core/nearest.ts';
import { checkConfig } from './check.ts';
import { databaseUrl } from './database-url.ts';
import type { BrokerConfig, Config, ConfigContext, ConfigFunction, DatabaseConfig } from './define.ts';
import { type ChosenEnv, chooseEnv, envOutside } from './env.ts';
import { readLink } from './link.ts';
import { type LoadedPlugin, PluginHost } from './plugins.ts';

export interface RuntimeOptions {
  /** Where the search for a configuration begins; default the working directory. */
  readonly cwd?: string;
  readonly configFile?: string;
  /** A configuration in code: no file is read. Its own product and env may stand beside it. */
  readonly config?: Config | ConfigFunction;
  readonly env?: string;
  readonly product?: string;
}

/** A configuration that was found, checked and bound to an environment. Plugins and drivers load when asked for. */
export interface Runtime {
  /** The folder of the configuration. */
  readonly root: string;
  readonly file?: string;
  readonly config: Config;
  readonly product: string;
  readonly env: string;
  readonly envFrom: ChosenEnv['from'];
  /** Whatever changes a database needs `--yes`. */
  readonly protectedEnv: boolean;
  /** Database tags in the configuration's order. */
  readonly databases: readonly string[];
  kernel(): Promise<Kernel>;
  /** The plugins of the configuration and the built-in dialects that its databases name. */
  plugins(): Promise<readonly LoadedPlugin[]>;
  /** Throws `database_unknown`. */
  database(tag: string): DatabaseConfig;
  dialectOf(tag: string): Promise<Dialect>;
  /** What is registered under a name: `find('models', 'openai')`. Throws `name_unknown` with those that there are. */
  readonly find: PluginHost['find'];
  /** With its password. Throws `env_unknown`. */
  urlOf(tag: string): string;
  /** Throws `database_shared` where another tag of this runtime is the same physical database. */
  connect(tag: string, options?: ConnectOptions): Promise<Adapter>;
  /** The broker of that name in the configuration: one for the runtime. Throws `name_unknown`. */
  broker(name: string): Promise<Broker>;
  /** Closes every connection that is still open or about to be; one that waits for its turn gives up. */
  close(): Promise<void>;
}

/** Finds, loads and checks the configuration, and settles the environment. Connects to nothing. */
export async function loadRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
  const cwd = resolve(options.cwd ?? '.');
  const found = options.config === undefined ? await locate(cwd, options.configFile) : undefined;
  const root = found?.root ?? cwd;
  const link = found && readLink(root);
  const outside = envOutside(options.env, link);
  const context = { env: outside?.env };
  const value = found ? await found.load(context) : await inCode(options, context);
  const config = checkConfig(value, found?.file);
  const chosen = chooseEnv(outside, config.env, found?.file);
  const product = theProduct([options.product, config.product, link?.product], found?.file);
  return bind({ root, ...(found && { file: found.file }), config, product, chosen });
}

interface Located {
  readonly file: string;
  readonly root: string;
  load(context: ConfigContext): Promise<unknown>;
}

async function locate(cwd: string, named: string | undefined): Promise<Located> {
  const { locateConfig, loadConfigFile } = await import('./load.ts');
  const { loadDotEnv } = await import('./dot-env.ts');
  const { file, root } = locateConfig(cwd, named);
  await loadDotEnv(root);
  return { file, root, load: (context) => loadConfigFile(file, context) };
}

/** What stands beside a configuration in code is that configuration's own. */
function inCode({ config, product, env }: RuntimeOptions, context: ConfigContext): unknown {
  if (typeof config === 'function') return config(context);
  return { ...(product !== undefined && { product }), ...(env !== undefined && { env }), ...config };
}

function theProduct(said: readonly (string | undefined)[], where: string | undefined): string {
  const [product, ...others] = [...new Set(said.filter((name) => name !== undefined))];
  if (product !== undefined && others.length === 0) return product;
  throw new SvcError(
    'config_invalid',
    product === undefined ? 'No product is named.' : `Two products are named: "${product}" and "${others[0]}".`,
    {
      why:
        product === undefined
          ? 'The history of a database says whose it is.'
          : 'The arguments, the configuration and svc/config.json must mean the same product.',
      next: [product === undefined ? "Add product: '<name>' to the configuration." : 'Correct the one that is wrong.'],
      ...(where !== undefined && { where }),
    },
  );
}

interface Bound {
  readonly root: string;
  readonly file?: string;
  readonly config: Config;
  readonly product: string;
  readonly chosen: ChosenEnv;
}

function bind({ root, file, config, product, chosen: { env, from } }: Bound): Runtime {
  const host = new PluginHost(config, { root, ...(file !== undefined && { file }) });
  const databases = Object.keys(config.databases ?? {});
  const open = new Set<Connection>();
  const opening = new Set<Promise<Adapter>>();
  let closing = new AbortController();
  const used = new Map<string, string>();
  const brokers = new Map<string, Promise<Broker>>();

  const database = (tag: string): DatabaseConfig => {
    const found = databases.includes(tag) ? config.databases?.[tag] : undefined;
    if (found) return found;
    const near = nearest(tag, databases);
    throw new SvcError('database_unknown', `No database has the tag "${tag}".`, {
      why: `Configured: ${databases.join(', ') || 'none'}.`,
      next: [near ? `Did you mean "${near}"?` : `Add databases.${tag} to the configuration.`],
      ...(file !== undefined && { where: file }),
    });
  };
  const dialectOf = async (tag: string): Promise<Dialect> => {
    const { dialect } = database(tag);
    return host.find('dialects', dialect);
  };
  const urlOf = (tag: string): string => databaseUrl(config, tag, database(tag), env, root);

  const connect = async (tag: string, options: ConnectOptions): Promise<Adapter> => {
    const { schema, options: own } = database(tag);
    const url = urlOf(tag);
    const dialect = await dialectOf(tag);
    claim(used, `${dialect.name} ${dialect.identify(url)} ${schema ?? ''}`, tag);
    const { hooks } = await host.kernel();
    const signal = options.signal ? AbortSignal.any([options.signal, closing.signal]) : closing.signal;
    const settings = { root, ...own, ...(schema !== undefined && { schema }), ...options, signal };
    const connection = tracked(await dialect.connect(url, settings), open);
    return { database: tag, product, env, dialect, connection, hooks };
  };

  const broker = async (name: string): Promise<Broker> => {
    const { type, ...options } = brokerConfig(config, name);
    return (await host.find('brokers', type))(options);
  };

  return {
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
      for (const name of new Set(databases.map((tag) => database(tag).dialect))) await host.find('dialects', name);
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
    async close() {
      closing.abort();
      closing = new AbortController();
      await Promise.allSettled(opening);
      await Promise.all([...open].map((connection) => connection.close()));
      await Promise.allSettled([...brokers.values()].map(async (opened) => (await opened).close()));
      brokers.clear();
    },
  };
}

function brokerConfig({ brokers = {} }: Config, name: string): BrokerConfig {
  const found = Object.hasOwn(brokers, name) ? brokers[name] : undefined;
  if (found) return found;
  const near = nearest(name, Object.keys(brokers));
  throw new SvcError('name_unknown', `No broker is configured as "${name}".`, {
    why: `Configured: ${Object.keys(brokers).join(', ') || 'none'}.`,
    next: [near ? `Did you mean "${near}"?` : `Add brokers.${name} to the configuration.`],
  });
}

function claim(used: Map<string, string>, physical: string, tag: string): void {
  const other = used.get(physical) ?? tag;
  if (other !== tag) {
    throw new SvcError('database_shared', `"${other}" and "${tag}" are one and the same database.`, {
      why: 'Each tag has a history of its own: two histories in one database would undo one another.',
      next: ['Use one tag, or give each a database (or a schema) of its own.'],
      details: { databases: [other, tag] },
    });
  }
  used.set(physical, tag);
}

/** Remembers the connection until it is closed, by whomever; closing twice is closing once. */
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
