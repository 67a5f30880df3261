import type { Adapter } from '../../core/database/adapter.ts';
import { Kernel } from '../../core/kernel.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { connectAdapter } from './adapter.ts';
import { freshFolder } from './pglite.ts';
import { freshDatabase, unavailable } from './postgresql.ts';

/** A database that is new, and its removal. */
export interface Fresh {
  readonly url: string;
  drop(): Promise<void>;
}

/** An engine that tests run on, whatever dialect it speaks. */
export class TestEngine {
  readonly name: string;
  /** Why it cannot be used here. */
  readonly missing: string | undefined;
  readonly #fresh: () => Promise<Fresh>;

  constructor(name: string, fresh: () => Promise<Fresh>, missing?: string) {
    this.name = name;
    this.missing = missing;
    this.#fresh = fresh;
  }

  /** Runs a body on the URL of a database of its own; what it connects is closed behind it. */
  async withUrl(body: (url: string, connect: (kernel?: Kernel) => Promise<Adapter>) => Promise<void>): Promise<void> {
    const { url, drop } = await this.#fresh();
    const open: Adapter[] = [];
    try {
      await body(url, async (kernel = new Kernel()) => {
        const adapter = await connectAdapter(postgresql, url, { kernel });
        open.push(adapter);
        return adapter;
      });
    } finally {
      for (const { connection } of open) await connection.close();
      await drop();
    }
  }

  /** Runs a body on a connected database of its own; `again` connects to it once more. */
  withDatabase(
    body: (adapter: Adapter, again: () => Promise<Adapter>, kernel: Kernel) => Promise<void>,
  ): Promise<void> {
    return this.withUrl(async (_url, connect) => {
      const kernel = new Kernel();
      await body(await connect(kernel), () => connect(), kernel);
    });
  }
}

export const engines: readonly TestEngine[] = [
  new TestEngine('postgresql', freshDatabase, await unavailable()),
  new TestEngine('pglite', freshFolder),
];
