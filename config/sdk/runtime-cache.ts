import { SvcError } from '../../core/errors.ts';
import type { LoadSdk } from '../load/import-module.ts';
import { loadRuntime, type Runtime, type RuntimeOptions } from '../load/runtime.ts';
import { closeApprovals } from './approval-runtime.ts';

/** The runtimes of one client: one per environment and product, loaded on first use. */
export class RuntimeCache {
  readonly #options: RuntimeOptions;
  readonly #loadSdk: LoadSdk;
  readonly #runtimes = new Map<string, Promise<Runtime>>();
  #closed = false;

  constructor(options: RuntimeOptions, loadSdk: LoadSdk) {
    this.#options = withOptionsInConfig(options);
    this.#loadSdk = loadSdk;
  }

  /** Retries a runtime that failed to load. Throws `connection_failed` once the client is closed. */
  async get(env?: string, product?: string): Promise<Runtime> {
    this.assertOpen();
    const runtime = await this.#load(env, product);
    this.assertOpen();
    return runtime;
  }

  assertOpen(): void {
    if (!this.#closed) return;
    throw new SvcError('connection_failed', 'The client is closed.', {
      why: 'close() was called, so a new connection would never be closed.',
      next: ['Create a new client.'],
    });
  }

  /** Rejects further use; open runtimes stay open until `close`. */
  markClosed(): void {
    this.#closed = true;
  }

  async close(): Promise<void> {
    this.markClosed();
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
    const options = {
      ...this.#options,
      ...(env !== undefined && { env }),
      ...(product !== undefined && { product }),
    };
    const loading = loadRuntime(options, this.#loadSdk, loadApprover);
    this.#runtimes.set(key, loading);
    loading.catch(() => this.#runtimes.delete(key));
    return loading;
  }
}

const loadApprover = async () => (await import('./plan-approver.ts')).CallPlanApprover;

/** Moves product and env into a configuration in code, so that another env in `connect` does not replace its own. */
function withOptionsInConfig(options: RuntimeOptions): RuntimeOptions {
  const { config, product, env } = options;
  if (typeof config !== 'object') return options;
  return {
    ...options,
    config: { ...(product !== undefined && { product }), ...(env !== undefined && { env }), ...config },
  };
}
