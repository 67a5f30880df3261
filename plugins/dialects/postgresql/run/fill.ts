import { setTimeout as sleep } from 'node:timers/promises';
import type { Progress } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { restAfter } from '../../shared/pace.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/grammar.ts';
import { quoteLiteral } from '../compile/literal.ts';
import type { Fill } from '../compile/step.ts';
import { isTransient } from '../connection/errors.ts';
import type { Settings } from '../connection/settings.ts';

/** How long a batch keeps the rows that it writes locked. */
const BATCH_MS = 100;
const FIRST_PAGES = 64;
const MOST_PAGES = 16_384;
/** Servers before 14 read the whole table for each batch. */
const RANGE_SCANS_SINCE = 140_000;
const BATCHES_WITHOUT_RANGES = 16;
/** Replicas that are later than this are waited for. */
const MOST_LAG_SECONDS = 5;
const LAG_CHECK_MS = 1_000;
/** After so many checks a batch is written all the same: a replica may never come back. */
const MOST_LAG_WAITS = 60;
/** While somebody writes nulls, passes find rows. */
const MOST_PASSES = 10;

interface FillContext {
  readonly exec: ExecSql;
  /** Quoted, with its dot. */
  readonly schema: string;
  readonly settings: Pick<Settings, 'lockTimeoutMs' | 'lockRetries' | 'onProgress'>;
  shouldStop(): boolean;
}

/**
 * Sets a column where it is null, page by page, each batch in a transaction of its own. A row that is written by others moves, maybe
 * to a page that was passed: passes are repeated until one finds nothing.
 */
export async function runFill(context: FillContext, fill: Fill): Promise<void> {
  const { exec, schema, settings } = context;
  const table = `${schema}${quoteIdentifier(fill.table)}`;
  const column = quoteIdentifier(fill.column);
  const missing = `${column} IS NULL${fill.isNullable ? ` AND (${fill.value}) IS NOT NULL` : ''}`;
  // Rows that a policy hides would be left out in silence.
  await exec(`SET lock_timeout = ${settings.lockTimeoutMs}; SET row_security = off`);
  try {
    const size = await tableSize(exec, table);
    const pace = new Pace(context);
    let done = 0;
    for (let pass = 0; pass < MOST_PASSES; pass += 1) {
      const found = await runPass(
        size,
        pace,
        `UPDATE ${table} SET ${column} = ${fill.value} WHERE ${missing}`,
        (rows) => {
          done += rows;
          settings.onProgress?.({ collection: fill.table, done, total: Math.max(size.rows, done) } satisfies Progress);
        },
      );
      if (found === 0) break;
    }
    const left = await rowsOf(exec, `SELECT 1 FROM ${table} WHERE ${missing} LIMIT 1`);
    if (left.length > 0) throw notFilled(fill);
  } finally {
    await exec('SET row_security TO DEFAULT');
  }
}

/** One pass over the pages. Returns the number of rows written. */
async function runPass(
  { pages, hasRanges }: TableSize,
  pace: Pace,
  update: string,
  onRows: (rows: number) => void,
): Promise<number> {
  const smallest = hasRanges ? 1 : Math.ceil(pages / BATCHES_WITHOUT_RANGES);
  let size = Math.max(smallest, FIRST_PAGES);
  let found = 0;
  for (let from = 0; from < pages; ) {
    const to = from + size >= pages ? '' : ` AND ctid < '(${from + size},0)'`;
    const startedAt = performance.now();
    const rows = await pace.run(`${update} AND ctid >= '(${from},0)'${to}`);
    const tookMs = performance.now() - startedAt;
    if (rows === undefined) {
      size = Math.max(smallest, Math.floor(size / 2));
      continue;
    }
    found += rows;
    from += size;
    size = Math.max(smallest, Math.min(MOST_PAGES, size * 2, Math.ceil((size * BATCH_MS) / Math.max(1, tookMs))));
    if (rows === 0) continue;
    onRows(rows);
    await pace.rest(tookMs);
  }
  return found;
}

interface TableSize {
  readonly pages: number;
  /** An estimate. */
  readonly rows: number;
  /** The server reads the pages of a batch alone. */
  readonly hasRanges: boolean;
}

async function tableSize(exec: ExecSql, table: string): Promise<TableSize> {
  const [row] = await rowsOf(
    exec,
    `SELECT pg_relation_size(oid) / current_setting('block_size')::int AS pages, reltuples AS rows, current_setting('server_version_num')::int AS version FROM pg_class WHERE oid = ${quoteLiteral(table)}::regclass`,
  );
  return {
    // At least one, for rows that are written from now on.
    pages: Number(row?.pages) + 1,
    rows: Math.max(0, Number(row?.rows)),
    hasRanges: Number(row?.version) >= RANGE_SCANS_SINCE,
  };
}

/** Leaves time to others, and waits for replicas. */
class Pace {
  readonly #context: FillContext;
  #blocked = 0;
  #lagCheckedAt = 0;

  constructor(context: FillContext) {
    this.#context = context;
  }

  /** The number of rows written; undefined if others had locked one of them, and nothing was. */
  async run(text: string): Promise<number | undefined> {
    if (this.#context.shouldStop()) throw interrupted();
    try {
      const [result] = await this.#context.exec(text);
      this.#blocked = 0;
      return result?.count ?? 0;
    } catch (error) {
      this.#blocked += 1;
      if (!isTransient(error) || this.#blocked > this.#context.settings.lockRetries) throw error;
      await sleep(Math.min(2_000, 50 * 2 ** this.#blocked));
      return undefined;
    }
  }

  async rest(batchMs: number): Promise<void> {
    await restAfter(batchMs);
    if (performance.now() - this.#lagCheckedAt < LAG_CHECK_MS) return;
    for (let waits = 0; waits < MOST_LAG_WAITS && (await this.#lagSeconds()) > MOST_LAG_SECONDS; waits += 1) {
      if (this.#context.shouldStop()) throw interrupted();
      await sleep(LAG_CHECK_MS);
    }
    this.#lagCheckedAt = performance.now();
  }

  /** 0 without replicas, or for a user who may not see them. */
  async #lagSeconds(): Promise<number> {
    const lag = 'SELECT COALESCE(extract(epoch FROM max(replay_lag)), 0) AS lag FROM pg_stat_replication';
    const [row] = await rowsOf(this.#context.exec, lag);
    return Number(row?.lag);
  }
}

const interrupted = (): SvcError =>
  new SvcError('interrupted', 'The run was interrupted while it filled a field.', {
    state: 'The rows that are filled keep their values.',
  });

const notFilled = ({ table, column }: Fill): SvcError =>
  new SvcError('data_violates', `Rows of "${table}" could not be given a value in "${column}".`, {
    why: 'A trigger of the table keeps them as they are, or somebody writes nulls.',
    next: [`Look at the triggers: SELECT tgname FROM pg_trigger WHERE tgrelid = '${table}'::regclass`],
  });
