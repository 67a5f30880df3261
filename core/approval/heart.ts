import type { ApprovalDesk, Row } from './desk.ts';
import { beaten } from './transition.ts';

/** Says that the tool still runs, so that nobody takes the claim for a dead one's. */
export class Heart {
  readonly #desk: ApprovalDesk;
  readonly #timer: NodeJS.Timeout;
  #row: Row;
  #beating: Promise<void> = Promise.resolve();
  /** Few handlers ask for a signal: it is made when one does. */
  #lost: AbortController | undefined;

  constructor(desk: ApprovalDesk, row: Row) {
    this.#desk = desk;
    this.#row = row;
    this.#timer = setInterval(() => this.#next(), (row.record.body.claim?.leaseMs ?? 0) / 3);
    this.#timer.unref();
  }

  /** Aborts with the other one, when somebody has given the claim up, or when the desk closes. */
  signal(other: AbortSignal | undefined): AbortSignal {
    this.#lost ??= new AbortController();
    return AbortSignal.any([...(other ? [other] : []), this.#lost.signal, this.#desk.closing]);
  }

  /** Gives the row as it was last written. */
  async stop(): Promise<Row> {
    clearInterval(this.#timer);
    await this.#beating;
    return this.#row;
  }

  #next(): void {
    this.#beating = this.#beating.then(() => this.#beat());
  }

  async #beat(): Promise<void> {
    const { claim } = this.#row.record.body;
    if (!claim) return;
    try {
      const written = await this.#desk.write(this.#row, beaten(this.#row.record, claim));
      if (written && written !== 'late') {
        this.#row = written;
        return;
      }
      const row = await this.#desk.read(this.#row.record.requestId);
      if (row?.record.body.run === 'claimed' && row.record.body.claim?.token === claim.token) this.#row = row;
      else {
        clearInterval(this.#timer);
        this.#lost ??= new AbortController();
        this.#lost.abort(new Error('The claim was lost.'));
      }
    } catch {
      // The store is out of reach: the next beat tries again.
    }
  }
}
