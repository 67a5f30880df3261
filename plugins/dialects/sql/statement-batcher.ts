import type { ExecSql, Result } from './session.ts';

/**
 * The maximum number of requests per batch, and of batches that are under way. While the engine works on one, this process
 * reads the results of the other; more of them, or larger ones, leave one side idle.
 */
const MAX_BATCH = 32;
const MAX_BATCHES = 2;

interface PendingRequest<Notice> {
  readonly statement: string;
  readonly notice: Notice | undefined;
  readonly resolve: (result: Result | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Sends requests that arrive in one turn of the event loop, or during a round trip, together: one round trip and one commit
 * for all. The engine runs a text of several statements as one transaction, so if one fails, each request is sent again on
 * its own. A request may have a notice for others, which is sent with it; `notify` are the statements for those of a batch.
 */
export class StatementBatcher<Notice = never> {
  readonly #exec: ExecSql;
  readonly #notify: (notices: readonly Notice[]) => readonly string[];
  #pending: PendingRequest<Notice>[] = [];
  #batches = 0;

  constructor(exec: ExecSql, notify: (notices: readonly Notice[]) => readonly string[] = () => []) {
    this.#exec = exec;
    this.#notify = notify;
  }

  /** Sends a statement, and returns its result. */
  send(statement: string, notice?: Notice): Promise<Result | undefined> {
    return new Promise((resolve, reject) => {
      this.#pending.push({ statement, notice, resolve, reject });
      if (this.#batches < MAX_BATCHES) void this.#run();
    });
  }

  async #run(): Promise<void> {
    this.#batches += 1;
    for (;;) {
      // Callers that get a result may make their next request at once: it is sent with those of the others.
      await new Promise<void>((resolve) => process.nextTick(resolve));
      const batch = this.#pending.splice(0, MAX_BATCH);
      if (batch.length === 0) break;
      if (batch.length === 1 || !(await this.#sendBatch(batch))) {
        for (const request of batch) await this.#sendSingly(request);
      }
    }
    this.#batches -= 1;
  }

  async #sendBatch(requests: readonly PendingRequest<Notice>[]): Promise<boolean> {
    try {
      const results = await this.#execAll(requests);
      for (const [at, { resolve }] of requests.entries()) resolve(results[at]);
      return true;
    } catch {
      return false;
    }
  }

  async #sendSingly(request: PendingRequest<Notice>): Promise<void> {
    try {
      const [result] = await this.#execAll([request]);
      request.resolve(result);
    } catch (error) {
      request.reject(error);
    }
  }

  #execAll(requests: readonly PendingRequest<Notice>[]): Promise<readonly Result[]> {
    const notices = requests.flatMap(({ notice }) => (notice === undefined ? [] : [notice]));
    return this.#exec([...requests.map(({ statement }) => statement), ...this.#notify(notices)].join(';\n'));
  }
}
