import { setTimeout as sleep } from 'node:timers/promises';
import type { Progress } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { restAfter } from '../../shared/pace.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteLiteral } from '../compile/literal.ts';
import { qualified, quoteIdentifier } from '../compile/names.ts';
import type { Fill } from '../compile/step.ts';
import { codeOf, isTransient, QUERY_CANCELED } from '../connection/errors.ts';
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
/** One may have missed a row that moved. */
const MOST_FRUITLESS_PASSES = 2;

interface FillContext {
  readonly exec: ExecSql;
  /** Quoted, with its dot. */
  readonly schema: string;
  readonly settings: Pick<Settings, 'lockTimeoutMs' | 'lockRetries' | 'statementTimeoutMs' | 'onProgress'>;
  shouldStop(): boolean;
}

/**
 * Sets a column where it is null, page by page, each batch in a transaction of its own. A row that is written by others moves, maybe
 * to a page that was passed: passes are repeated until none is left.
 */
export async function runFill(context: FillContext, fill: Fill): Promise<void> {
  const { exec, schema, settings } = context;
  const table = qualified(fill.table, schema);
  const column = quoteIdentifier(fill.column);
  const missing = `${column} IS NULL${fill.isNullable ? ` AND (${fill.value}) IS NOT NULL` : ''}`;
  // Rows that a policy hides would be left out in silence.
  await exec(`SET lock_timeout = ${settings.lockTimeoutMs}; SET row_security = off`);
  try {
    const parts = await tablesWithin(exec, table);
    const total = parts.reduce((sum, { rows }) => sum + rows, 0);
    const pace = new Pace(context);
    let done = 0;
    let fruitless = 0;
    for (let pass = 0; pass < MOST_PASSES && fruitless < MOST_FRUITLESS_PASSES; pass += 1) {
      const before = done;
      for (const part of parts) {
        const update = `UPDATE ONLY ${part.name} SET ${column} = ${fill.value} WHERE ${missing}`;
        await runPass(context, part, pace, update, (rows) => {
          done += rows;
          settings.onProgress?.({ collection: fill.table, done, total: Math.max(total, done) } satisfies Progress);
        });
      }
      const left = await rowsOf(exec, `SELECT 1 FROM ${table} WHERE ${missing} LIMIT 1`);
      if (left.length === 0) return;
      fruitless = done === before ? fruitless + 1 : 0;
    }
    throw notFilled(fill);
  } finally {
    await exec('SET row_security TO DEFAULT');
  }
}

/** One pass over the pages, also those that are added during it: each row that is written may go to a new one. */
async function runPass(
  { exec, settings: { statementTimeoutMs } }: FillContext,
  { oid, hasRanges }: Part,
  pace: Pace,
  update: string,
  onRows: (rows: number) => void,
): Promise<void> {
  const batchMs = statementTimeoutMs > 0 ? Math.min(BATCH_MS, statementTimeoutMs / 2) : BATCH_MS;
  let pages = await pageCount(exec, oid);
  const smallest = hasRanges ? 1 : Math.ceil(pages / BATCHES_WITHOUT_RANGES);
  let size = Math.max(smallest, FIRST_PAGES);
  for (let from = 0; from < pages; ) {
    const to = hasRanges || from + size < pages ? ` AND ctid < '(${from + size},0)'` : '';
    const startedAt = performance.now();
    const rows = await pace.run(`${update} AND ctid >= '(${from},0)'${to}`, size > smallest);
    const tookMs = performance.now() - startedAt;
    if (rows === undefined) {
      size = Math.max(smallest, Math.floor(size / 2));
      continue;
    }
    from += size;
    size = Math.max(smallest, Math.min(MOST_PAGES, size * 2, Math.ceil((size * batchMs) / Math.max(1, tookMs))));
    if (hasRanges && from >= pages) pages = await pageCount(exec, oid);
    if (rows === 0) continue;
    onRows(rows);
    await pace.rest(tookMs);
  }
}

/** A table, or one of its children. */
interface Part {
  /** Quoted, with its schema. */
  readonly name: string;
  readonly oid: number;
  /** An estimate. */
  readonly rows: number;
  /** The server reads the pages of a batch alone. */
  readonly hasRanges: boolean;
}

async function tablesWithin(exec: ExecSql, table: string): Promise<readonly Part[]> {
  const found = await rowsOf(
    exec,
    `WITH RECURSIVE part(oid) AS (SELECT ${quoteLiteral(table)}::regclass::oid UNION SELECT i.inhrelid FROM pg_inherits i JOIN part ON part.oid = i.inhparent)
SELECT format('%I.%I', n.nspname, c.relname) AS name, c.oid, c.reltuples AS rows, current_setting('server_version_num')::int AS version
FROM part JOIN pg_class c ON c.oid = part.oid JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY c.oid`,
  );
  return found.map(({ name, oid, rows, version }) => ({
    name: String(name),
    oid: Number(oid),
    rows: Math.max(0, Number(rows)),
    hasRanges: Number(version) >= RANGE_SCANS_SINCE,
  }));
}

async function pageCount(exec: ExecSql, oid: number): Promise<number> {
  const size = `SELECT pg_relation_size(${oid}) / current_setting('block_size')::int AS pages`;
  const [row] = await rowsOf(exec, size);
  return Number(row?.pages);
}

/** Leaves time to others, and waits for replicas. */
class Pace {
  readonly #context: FillContext;
  #blocked = 0;
  #lagCheckedAt = 0;

  constructor(context: FillContext) {
    this.#context = context;
  }

  /** The number of rows written; undefined if nothing was, because others had locked one of them, or it took too long. */
  async run(text: string, mayBeSmaller: boolean): Promise<number | undefined> {
    if (this.#context.shouldStop()) throw interrupted();
    const { lockRetries, statementTimeoutMs } = this.#context.settings;
    const startedAt = performance.now();
    try {
      const [result] = await this.#context.exec(text);
      this.#blocked = 0;
      return result?.count ?? 0;
    } catch (error) {
      const hasTimedOut = statementTimeoutMs > 0 && performance.now() - startedAt >= statementTimeoutMs;
      if (mayBeSmaller && hasTimedOut && codeOf(error) === QUERY_CANCELED) return undefined;
      this.#blocked += 1;
      if (!isTransient(error) || this.#blocked > lockRetries) throw error;
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
