import { SvcError } from '../core/errors.ts';
import { closeApprovals } from './approval-runtime.ts';
import { loadRuntime, type Runtime, type RuntimeOptions } from './runtime.ts';

/** The runtimes of one client: one per environment and product, loaded when it is first asked for. */
export class Runtimes {
  readonly #options: RuntimeOptions;
  readonly #runtimes = new Map<string, Promise<Runtime>>();
  #closed = false;

  constructor(options: RuntimeOptions) {
    this.#options = withOwn(options);
  }

  /** One that failed is tried again. Throws once the client is closed: nobody would close what is opened now. */
  async get(env?: string, product?: string): Promise<Runtime> {
    this.refuseClosed();
    const runtime = await this.#load(env, product);
    this.refuseClosed();
    return runtime;
  }

  refuseClosed(): void {
    if (!this.#closed) return;
    throw new SvcError('connection_failed', 'The client is closed.', {
      why: 'close() was called: nothing would close what is opened now.',
      next: ['Make a new client.'],
    });
  }

  /** Nothing is opened from now on. */
  shut(): void {
    this.#closed = true;
  }

  async close(): Promise<void> {
    this.shut();
    const runtimes = await Promise.allSettled(this.#runtimes.values());
    await Promise.all(
      runtimes.map(async (runtime) => {
        if (runtime.status === 'rejected') return;
        await closeApprovals(runtime.value);
        await runtime.value.close();
      }),
    );
  }

  #load(env: string | undefined, product: string | undefined): Promise<Runtime> {
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
function withOwn(options: RuntimeOptions): RuntimeOptions {
  const { config, product, env } = options;
  if (typeof config !== 'object') return options;
  return {
    ...options,
    config: { ...(product !== undefined && { product }), ...(env !== undefined && { env }), ...config },
  };
}
