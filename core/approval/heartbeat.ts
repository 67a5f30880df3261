import type { ApprovalService, RequestRow } from './service.ts';
import { withHeartbeat } from './state.ts';

/** Renews the claim on a running call, so that no other process considers it lost. */
export class Heartbeat {
  readonly #service: ApprovalService;
  readonly #timer: NodeJS.Timeout;
  #row: RequestRow;
  #pending: Promise<void> = Promise.resolve();
  /** Created on demand: few handlers read their signal. */
  #lost: AbortController | undefined;

  constructor(service: ApprovalService, row: RequestRow) {
    this.#service = service;
    this.#row = row;
    this.#timer = setInterval(() => this.#next(), (row.record.body.claim?.leaseMs ?? 0) / 3);
    this.#timer.unref();
  }

  /** Aborts when `other` does, when the claim is lost, or when the service closes. */
  signal(other: AbortSignal | undefined): AbortSignal {
    this.#lost ??= new AbortController();
    return AbortSignal.any([...(other ? [other] : []), this.#lost.signal, this.#service.closing]);
  }

  /** Resolves to the row as it was last written. */
  async stop(): Promise<RequestRow> {
    clearInterval(this.#timer);
    await this.#pending;
    return this.#row;
  }

  #next(): void {
    this.#pending = this.#pending.then(() => this.#beat());
  }

  async #beat(): Promise<void> {
    const { claim } = this.#row.record.body;
    if (!claim) return;
    try {
      const { written } = await this.#service.write(this.#row, withHeartbeat(this.#row.record, claim));
      if (written) {
        this.#row = written;
        return;
      }
      const row = await this.#service.read(this.#row.record.requestId);
      if (row?.record.body.run === 'claimed' && row.record.body.claim?.token === claim.token) this.#row = row;
      else {
        clearInterval(this.#timer);
        this.#lost ??= new AbortController();
        this.#lost.abort(new Error('The claim was lost.'));
      }
    } catch {
      // The store is unavailable: the next heartbeat tries again.
    }
  }
}
