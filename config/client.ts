import { Database } from '../core/database/database.ts';
import type { ConnectOptions } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';
import { loadRuntime, type Runtime, type RuntimeOptions } from './runtime.ts';

/** Whatever is not given is found as the CLI finds it: the nearest svc.config, the link, SVC_ENV. */
export interface SvcOptions extends RuntimeOptions {}

/** The client: one configuration, the databases it names. Reads nothing before it is used. */
export class Svc {
  readonly database: DatabaseService;

  constructor(options: SvcOptions = {}) {
    this.database = new DatabaseService(options);
  }

  /** Closes every connection made through this client. */
  close(): Promise<void> {
    return this.database.close();
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
  readonly #options: SvcOptions;
  readonly #runtimes = new Map<string, Promise<Runtime>>();
  #closed = false;

  constructor(options: SvcOptions = {}) {
    this.#options = withOwn(options);
  }

  /** Each call is a connection of its own. Throws `database_unknown`, `env_unknown`, and what the engine refuses. */
  async connect(request: ConnectRequest): Promise<Database> {
    this.#refuseClosed();
    const { database, env, product, options } = request ?? {};
    const asked: unknown = database;
    if (typeof asked !== 'string') {
      throw new SvcError('database_unknown', 'connect needs the tag of a database.', {
        next: ["connect({ database: 'main' })"],
      });
    }
    const runtime = await this.#runtime(env, product);
    this.#refuseClosed();
    return new Database(await runtime.connect(database, options));
  }

  async close(): Promise<void> {
    this.#closed = true;
    const runtimes = await Promise.allSettled(this.#runtimes.values());
    await Promise.all(runtimes.map((runtime) => (runtime.status === 'fulfilled' ? runtime.value.close() : undefined)));
  }

  /** Nobody would close what is opened now. */
  #refuseClosed(): void {
    if (!this.#closed) return;
    throw new SvcError('connection_failed', 'The client is closed.', {
      why: 'close() was called: nothing would close what is opened now.',
      next: ['Make a new client.'],
    });
  }

  /** One per environment: a configuration may be a function of it. One that failed is tried again. */
  #runtime(env: string | undefined, product: string | undefined): Promise<Runtime> {
    const key = JSON.stringify([product ?? null, env ?? null]);
    const known = this.#runtimes.get(key);
    if (known) return known;
    const loading = loadRuntime({
      ...this.#options,
      ...(env !== undefined && { env }),
      ...(product !== undefined && { product }),
    });
    this.#runtimes.set(key, loading);
    loading.catch(() => this.#runtimes.delete(key));
    return loading;
  }
}

/** What stands beside a configuration in code is its own: another env in `connect` must not become it. */
function withOwn(options: SvcOptions): SvcOptions {
  const { config, product, env } = options;
  if (typeof config !== 'object') return options;
  return {
    ...options,
    config: { ...(product !== undefined && { product }), ...(env !== undefined && { env }), ...config },
  };
}
