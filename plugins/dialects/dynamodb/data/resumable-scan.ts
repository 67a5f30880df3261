import type { TransactWriteItem } from '@aws-sdk/client-dynamodb';
import type { StateTable } from '../connection/state-table.ts';
import { type ScanJob, type ScanPosition, scanTable, startOfTable } from './scan.ts';

/** Saving the position costs as much as writing a few items, so it is not saved after every page. */
const SAVE_INTERVAL_MS = 500;
/** A scan whose saved position is older than this starts again from the beginning. */
const MAX_AGE_MS = 3_600_000;

/** The position of a scan, saved in an item of the state table so that another process can resume it. */
export class ScanProgress {
  readonly #state: StateTable;
  readonly #id: string;
  readonly #job: string;
  readonly #write: (item: TransactWriteItem) => Promise<void>;
  readonly #now: () => number;
  #savedAt = performance.now();
  #saving: Promise<void> | undefined;

  /** `job` identifies the work: a position saved for another job is ignored. */
  constructor(
    state: StateTable,
    id: string,
    job: string,
    write: (item: TransactWriteItem) => Promise<void>,
    now: () => number,
  ) {
    this.#state = state;
    this.#id = id;
    this.#job = job;
    this.#write = write;
    this.#now = now;
  }

  async load(): Promise<ScanPosition | undefined> {
    const item = await this.#state.get(this.#id);
    if (item?.job?.S !== this.#job || this.#now() - Number(item.at?.N) > MAX_AGE_MS) return undefined;
    return JSON.parse(item.position?.S ?? '') as ScanPosition;
  }

  /** One write at a time: pages that finish during a write are included in the next one. */
  async save(position: ScanPosition): Promise<void> {
    if (this.#saving || performance.now() - this.#savedAt < SAVE_INTERVAL_MS) return;
    this.#savedAt = performance.now();
    this.#saving = this.#writePosition(JSON.stringify(position)).finally(() => {
      this.#saving = undefined;
    });
    await this.#saving;
  }

  async #writePosition(position: string): Promise<void> {
    await this.#write({
      Put: {
        TableName: this.#state.table,
        Item: {
          ...this.#state.key(this.#id),
          job: { S: this.#job },
          position: { S: position },
          at: { N: String(this.#now()) },
        },
      },
    });
  }

  async finish(): Promise<void> {
    await this.#saving;
    await this.#write(progressRemoval(this.#state, this.#id));
  }
}

/** Deletes a saved position, inside a fenced write. */
export function progressRemoval(state: StateTable, id: string): TransactWriteItem {
  return { Delete: { TableName: state.table, Key: state.key(id) } };
}

/** Under the lock a table has at most one scan that moves data. */
export const moveProgressId = (table: string): string => `move#${table}`;

interface ResumableScan extends Omit<ScanJob, 'position' | 'onPage'> {
  /** Items in the table, as DynamoDB estimates them. */
  readonly items: number;
  readonly progress: ScanProgress;
  /** `updateFor` leaves items alone that an interrupted attempt has already updated. */
  readonly repeatable: boolean;
  /** Called after each page with the number of items read. */
  onProgress(scanned: number): void;
}

/**
 * Resumes a scan from the saved position. Items inserted before that position since then are found by scanning the whole
 * table again, because a scan cannot end at a position. A job that is not `repeatable` leaves them alone.
 */
export async function resumeScan({
  items,
  progress,
  repeatable,
  onProgress,
  ...job
}: ResumableScan): Promise<ScanPosition> {
  const found = await progress.load();
  const position = found ?? startOfTable(items);
  const onPage = async (now: ScanPosition) => {
    onProgress(now.scanned);
    await progress.save(now);
  };
  await scanTable({ ...job, position, onPage });
  if (found && repeatable) {
    const again = startOfTable(items);
    await scanTable({ ...job, position: again, onPage: async () => onProgress(position.scanned) });
    // Items that need no update were counted by the first scan.
    position.matched += again.changed;
    position.changed += again.changed;
  }
  await progress.finish();
  return position;
}
