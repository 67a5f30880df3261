import { anyDefinition } from '../../../core/records.ts';
import { createHome, orMissing } from './home.ts';
import { storeAt } from './records.ts';
import { seatOf } from './seat.ts';
import type { Session } from './session.ts';
import type { Settings } from './settings.ts';
import { type WorkRow, work } from './work.ts';

/** How often it is written down and told how far the work has come. */
const EVERY_MS = 1000;
/** One that was written less than this ago, and not left, belongs to a process that lives. */
const ALIVE_MS = 10_000;
/** Rows that came since then would be left out: an older one is not gone on with. */
const FORGOTTEN_MS = 3_600_000;

export interface Counted {
  matched: number;
  modified: number;
}

/** Where moving data stands, in a partition of its own: a process that dies leaves it to the next one with the same job. */
export class Progress {
  readonly #session: Session;
  readonly #settings: Settings;
  readonly #id: string;
  readonly #table: string;
  readonly #isAlone: boolean;
  readonly #store;
  #version = 0;
  /** Somebody else is at the same job: this one does all of it by itself and writes nothing down. */
  #apart = false;
  #told = performance.now();
  #last: (Counted & { readonly cursor: string }) | undefined;

  /** `isAlone`: a lock keeps others away from the same job, so what is found was left. */
  constructor(session: Session, settings: Settings, table: string, id: string, isAlone: boolean) {
    this.#session = session;
    this.#settings = settings;
    this.#id = id;
    this.#table = table;
    this.#isAlone = isAlone;
    this.#store = storeAt(session, seatOf(anyDefinition(work), `work ${id}`));
  }

  /** Where to go on, and what is counted already. */
  async begin(): Promise<Counted & { readonly cursor?: string }> {
    const found = await this.#store.get(this.#id);
    this.#version = found?.version ?? 0;
    if (!found) return { matched: 0, modified: 0 };
    const { cursor, matched, modified, at } = found.record as unknown as WorkRow;
    const age = Date.now() - at.getTime();
    this.#apart = !this.#isAlone && age < ALIVE_MS;
    if (this.#apart || age > FORGOTTEN_MS || cursor === null) return { matched: 0, modified: 0 };
    return { cursor, matched, modified };
  }

  async reached(cursor: string | undefined, { matched, modified }: Counted): Promise<void> {
    if (cursor !== undefined) this.#last = { cursor, matched, modified };
    if (performance.now() - this.#told < EVERY_MS) return;
    this.#told = performance.now();
    this.#settings.onProgress?.({ collection: this.#table, done: matched });
    if (this.#last) await this.#write({ id: this.#id, ...this.#last, at: new Date() });
  }

  /** Writes down how far it is for whoever goes on, which may be at once. */
  async #leave(): Promise<void> {
    if (this.#last) await this.#write({ id: this.#id, ...this.#last, at: new Date(Date.now() - ALIVE_MS) });
  }

  async #write(row: WorkRow): Promise<void> {
    if (this.#apart) return;
    if (this.#version > 0) {
      const outcome = await this.#store.replace(this.#id, this.#version, { ...row });
      this.#apart = outcome !== 'replaced';
    } else {
      this.#apart = (await this.#insert(row)) !== 'inserted';
    }
    this.#version += 1;
  }

  #insert(row: WorkRow): Promise<'inserted' | 'exists'> {
    const { table, column } = seatOf(anyDefinition(work), 'work');
    const insert = () => this.#store.insert({ ...row });
    return orMissing(this.#session, table, Object.keys(work.columns).map(column), insert, async () => {
      await createHome(this.#session, this.#settings);
      return insert();
    });
  }

  /** Does the job, and leaves it where it fails. What failed is told, whatever becomes of the note. */
  async during<T>(job: () => Promise<T>): Promise<T> {
    try {
      return await job();
    } catch (error) {
      await this.#leave().catch(() => undefined);
      throw error;
    }
  }

  async end(): Promise<void> {
    // What a dead one left is done too now; what a living one has written since has another version.
    if (this.#version > 0) await this.#store.remove(this.#id, this.#version);
  }
}
