import { anyDefinition, type RecordStore, typedStore } from '../../../../core/records.ts';
import type { Session } from '../connection/session.ts';
import type { Settings } from '../connection/settings.ts';
import { ifMissing } from '../connection/system-schema.ts';
import { createLockTable, type ProgressRow, progressTable } from '../records/lock-partition.ts';
import { storeOf } from '../records/record-store.ts';
import { locationOf } from '../records/record-writes.ts';

const SAVE_INTERVAL_MS = 1000;
/** A row saved more recently than this, and not released, belongs to a live process. */
const ALIVE_MS = 10_000;
/** A scan whose position was saved longer ago starts again from the beginning. */
const MAX_AGE_MS = 3_600_000;

export interface RowCounts {
  matched: number;
  modified: number;
}

/** The position of a scan, saved in its own partition, so that another process with the same job can resume it. */
export class ScanProgress {
  readonly #session: Session;
  readonly #settings: Settings;
  readonly #id: string;
  readonly #table: string;
  readonly #isLocked: boolean;
  readonly #store: RecordStore<ProgressRow>;
  #version = 0;
  /** Another process runs the same job: this one scans the whole table and saves no position. */
  #detached = false;
  #savedAt = performance.now();
  #position: (RowCounts & { readonly cursor: string }) | undefined;

  /** `isLocked`: a lock excludes other processes, so a position that is found can be resumed. */
  constructor(session: Session, settings: Settings, table: string, id: string, isLocked: boolean) {
    this.#session = session;
    this.#settings = settings;
    this.#id = id;
    this.#table = table;
    this.#isLocked = isLocked;
    this.#store = typedStore(storeOf(session, locationOf(anyDefinition(progressTable), `progress ${id}`)));
  }

  /** The position to resume from, and the counts so far. */
  async load(): Promise<RowCounts & { readonly cursor?: string }> {
    const found = await this.#store.get(this.#id);
    this.#version = found?.version ?? 0;
    if (!found) return { matched: 0, modified: 0 };
    const { cursor, matched, modified, at } = found.record;
    const age = Date.now() - at.getTime();
    this.#detached = !this.#isLocked && age < ALIVE_MS;
    if (this.#detached || age > MAX_AGE_MS || cursor === null) return { matched: 0, modified: 0 };
    return { cursor, matched, modified };
  }

  async save(cursor: string | undefined, { matched, modified }: RowCounts): Promise<void> {
    if (cursor !== undefined) this.#position = { cursor, matched, modified };
    if (performance.now() - this.#savedAt < SAVE_INTERVAL_MS) return;
    this.#savedAt = performance.now();
    this.#settings.onProgress?.({ collection: this.#table, done: matched });
    if (this.#position) await this.#write({ id: this.#id, ...this.#position, at: new Date() });
  }

  /** Saves the position so that another process can resume it immediately. */
  async #release(): Promise<void> {
    if (this.#position) await this.#write({ id: this.#id, ...this.#position, at: new Date(Date.now() - ALIVE_MS) });
  }

  async #write(row: ProgressRow): Promise<void> {
    if (this.#detached) return;
    if (this.#version > 0) {
      const outcome = await this.#store.replace(this.#id, this.#version, { ...row });
      this.#detached = outcome !== 'replaced';
    } else {
      this.#detached = (await this.#insert(row)) !== 'inserted';
    }
    this.#version += 1;
  }

  #insert(row: ProgressRow): Promise<'inserted' | 'exists'> {
    const { table, column } = locationOf(anyDefinition(progressTable), 'work');
    const insert = () => this.#store.insert({ ...row });
    return ifMissing(this.#session, table, Object.keys(progressTable.columns).map(column), insert, async () => {
      await createLockTable(this.#session, this.#settings);
      return insert();
    });
  }

  /** Runs the job and, if it fails, releases the position. */
  async releaseOnFailure<T>(job: () => Promise<T>): Promise<T> {
    try {
      return await job();
    } catch (error) {
      await this.#release().catch(() => undefined);
      throw error;
    }
  }

  async finish(): Promise<void> {
    // The version protects a row that another live process has saved since.
    if (this.#version > 0) await this.#store.remove(this.#id, this.#version);
  }
}
