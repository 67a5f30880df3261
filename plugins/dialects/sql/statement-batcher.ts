import type { ExecSql, Result } from './session.ts';

/** The maximum number of requests per batch. */
const MAX_BATCH = 64;

interface PendingRequest {
  readonly statements: readonly string[];
  readonly resolve: (results: readonly Result[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends requests that arrive during a round trip together: one round trip and one commit for all. The engine runs a text
 * of several statements as one transaction, so if one fails, each request is sent again on its own.
 */
export class StatementBatcher {
  readonly #exec: ExecSql;
  #pending: PendingRequest[] = [];
  #sending = false;

  constructor(exec: ExecSql) {
    this.#exec = exec;
  }

  /** Sends statements that belong together, with one result each. */
  send(statements: readonly string[]): Promise<readonly Result[]> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ statements, resolve, reject });
      if (!this.#sending) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#sending = true;
    while (this.#pending.length > 0) {
      const batch = this.#pending.splice(0, MAX_BATCH);
      if (batch.length === 1 || !(await this.#sendBatch(batch))) {
        for (const request of batch) await this.#sendSingly(request);
      }
    }
    this.#sending = false;
  }

  async #sendBatch(requests: readonly PendingRequest[]): Promise<boolean> {
    try {
      const results = await this.#exec(requests.flatMap(({ statements }) => statements).join(';\n'));
      let at = 0;
      for (const { statements, resolve } of requests) {
        resolve(results.slice(at, at + statements.length));
        at += statements.length;
      }
      return true;
    } catch {
      return false;
    }
  }

  async #sendSingly({ statements, resolve, reject }: PendingRequest): Promise<void> {
    try {
      resolve(await this.#exec(statements.join(';\n')));
    } catch (error) {
      reject(error);
    }
  }
}
