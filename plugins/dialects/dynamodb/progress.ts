import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { State } from './state.ts';
import type { Standing } from './sweep.ts';

/** Writing down how far a sweep is costs as much as a few items: not after every page. */
const EVERY_MS = 500;
/** A standing older than this is not gone on from: an interrupted sweep that was left alone begins again. */
const FRESH_MS = 3_600_000;

/** How far a sweep is, kept in an item of ours so that another process can go on. */
export class Progress {
  readonly #state: State;
  readonly #id: string;
  readonly #what: string;
  readonly #write: (item: TransactWriteItem) => Promise<void>;
  readonly #now: () => number;
  #savedAt = performance.now();
  #saving: Promise<void> | undefined;

  /** `what` is the very thing that is done: another one begins anew. */
  constructor(
    state: State,
    id: string,
    what: string,
    write: (item: TransactWriteItem) => Promise<void>,
    now: () => number,
  ) {
    this.#state = state;
    this.#id = id;
    this.#what = what;
    this.#write = write;
    this.#now = now;
  }

  async found(): Promise<Standing | undefined> {
    const item = await this.#state.get(this.#id);
    if (item?.what?.S !== this.#what || this.#now() - Number(item.at?.N) > FRESH_MS) return undefined;
    return JSON.parse(item.standing?.S ?? '') as Standing;
  }

  /** One at a time: pages that are done meanwhile are in the next. */
  async reached(standing: Standing): Promise<void> {
    if (this.#saving || performance.now() - this.#savedAt < EVERY_MS) return;
    this.#savedAt = performance.now();
    this.#saving = this.#save(JSON.stringify(standing)).finally(() => {
      this.#saving = undefined;
    });
    await this.#saving;
  }

  async #save(standing: string): Promise<void> {
    await this.#write({
      Put: {
        TableName: this.#state.table,
        Item: {
          ...this.#state.key(this.#id),
          what: { S: this.#what },
          standing: { S: standing },
          at: { N: String(this.#now()) },
        },
      },
    });
  }

  async finish(): Promise<void> {
    await this.#saving;
    await this.#write(forgotten(this.#state, this.#id));
  }
}

/** Takes a standing away, inside a fenced write. */
export function forgotten(state: State, id: string): TransactWriteItem {
  return { Delete: { TableName: state.table, Key: state.key(id) } };
}

/** One sweep at a time goes over a table under the lock. */
export const moveId = (table: string): string => `move#${table}`;
