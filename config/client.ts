import { Database } from '../core/database/database.ts';
import type { ConnectOptions } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';
import { Agents } from './agents.ts';
import { Approvals } from './approvals.ts';
import { Gate, type GateDefinition } from './gate.ts';
import type { RuntimeOptions } from './runtime.ts';
import { Runtimes } from './runtimes.ts';

/** Whatever is not given is found as the CLI finds it: the nearest svc.config, the link, SVC_ENV. */
export interface SvcOptions extends RuntimeOptions {}

/** The client: one configuration, the databases it names. Reads nothing before it is used. */
export class Svc {
  readonly database: DatabaseService;
  /** @experimental */
  readonly agents: Agents;
  /** @experimental */
  readonly approvals: Approvals;
  readonly #runtimes: Runtimes;

  constructor(options: SvcOptions = {}) {
    const runtimes = new Runtimes(options);
    this.#runtimes = runtimes;
    this.database = new DatabaseService(runtimes);
    this.agents = new Agents(() => runtimes.get());
    this.approvals = new Approvals(() => runtimes.get());
  }

  /** A gate between the tools of an agent and whatever else runs it. @experimental */
  gate<const T extends readonly unknown[]>(definition: GateDefinition<T>): Gate {
    return new Gate(definition as GateDefinition, () => this.#runtimes.get());
  }

  /** Stops what runs (it can be resumed) and closes every connection made through this client. */
  async close(): Promise<void> {
    this.#runtimes.shut();
    await this.agents.close();
    await this.#runtimes.close();
  }
}

export interface ConnectRequest {
  /** The tag in the configuration. */
  readonly database: string;
  /** Another environment than the client's. */
  readonly env?: string;
  readonly product?: string;
  readonly options?: ConnectOptions;
}

/** Connects databases. Alone, without a client, `connect` takes product and env. */
export class DatabaseService {
  readonly #runtimes: Runtimes;

  constructor(options: SvcOptions | Runtimes = {}) {
    this.#runtimes = options instanceof Runtimes ? options : new Runtimes(options);
  }

  /** Each call is a connection of its own. Throws `database_unknown`, `env_unknown`, and what the engine refuses. */
  async connect(request: ConnectRequest): Promise<Database> {
    this.#runtimes.refuseClosed();
    const { database, env, product, options } = request ?? {};
    const asked: unknown = database;
    if (typeof asked !== 'string') {
      throw new SvcError('database_unknown', 'connect needs the tag of a database.', {
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
