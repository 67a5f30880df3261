/**
 * The client, and everything else that applications and plugins import.
 * @module @svc/sdk
 */

import { Database } from '../../core/database/database.ts';
import type { ConnectOptions } from '../../core/dialect.ts';
import { SvcError } from '../../core/errors.ts';
import type { LoadSdk } from '../load/import-module.ts';
import type { RuntimeOptions } from '../load/runtime.ts';
import { Agents } from './agents.ts';
import { Approvals } from './approvals.ts';
import { Gate, type GateDefinition } from './gate.ts';
import { People } from './people.ts';
import { RuntimeCache } from './runtime-cache.ts';

export * from './exports.ts';

/** Makes `@svc/sdk` in user code resolve to this copy; a second copy would break `instanceof`. */
const loadSdk: LoadSdk = async () => ({ ...(await import('./exports.ts')), DatabaseService, Svc });

/**
 * Omitted options are resolved as in the CLI: the nearest svc.config, the link, SVC_ENV. Without a svc.config, `product`
 * and `env` are the whole configuration: no databases, approvals in memory.
 */
export interface SvcOptions extends RuntimeOptions {}

/** The client of one configuration and its databases. Reads nothing until it is used. */
export class Svc {
  readonly database: DatabaseService;
  /** @experimental */
  readonly agents: Agents;
  /** @experimental */
  readonly approvals: Approvals;
  /** @experimental */
  readonly people: People;
  readonly #runtimes: RuntimeCache;

  constructor(options: SvcOptions = {}) {
    const runtimes = new RuntimeCache(options, loadSdk);
    this.#runtimes = runtimes;
    this.database = new DatabaseService(runtimes);
    this.agents = new Agents(() => runtimes.get());
    this.approvals = new Approvals(() => runtimes.get());
    this.people = new People(() => runtimes.get());
  }

  /** Creates an approval gate for the tools of an agent that another framework runs. @experimental */
  gate<const T extends readonly unknown[]>(definition: GateDefinition<T>): Gate {
    return new Gate(definition as GateDefinition, () => this.#runtimes.get());
  }

  /** Stops running executions, which can be resumed, and closes every connection of this client. */
  async close(): Promise<void> {
    this.#runtimes.markClosed();
    await this.agents.close();
    await this.#runtimes.close();
  }
}

export interface ConnectRequest {
  /** The database's tag in the configuration. */
  readonly database: string;
  /** Default: the client's environment. */
  readonly env?: string | undefined;
  readonly product?: string | undefined;
  readonly options?: ConnectOptions | undefined;
}

/** Connects databases. Also works without a client: then pass product and env to `connect`. */
export class DatabaseService {
  readonly #runtimes: RuntimeCache;

  constructor(options: SvcOptions | RuntimeCache = {}) {
    // per copy: only Svc passes one.
    this.#runtimes = options instanceof RuntimeCache ? options : new RuntimeCache(options, loadSdk);
  }

  /** Opens a new connection. Throws `database_unknown`, `env_unknown`, and connection errors. */
  async connect(request: ConnectRequest): Promise<Database> {
    this.#runtimes.assertOpen();
    const { database, env, product, options } = request ?? {};
    const tag: unknown = database;
    if (typeof tag !== 'string') {
      throw new SvcError('database_unknown', 'connect() needs a database tag.', {
        next: ["connect({ database: 'main' })"],
      });
    }
    const runtime = await this.#runtimes.get(env, product);
    return new Database(await runtime.connect(database, options));
  }

  close(): Promise<void> {
    return this.#runtimes.close();
  }
}
