import type { Progress } from '../../../../core/dialect.ts';
import { restAfter } from '../../shared/pace.ts';
import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { type CatalogTable, PRIMARY_KEY } from '../catalog/catalog-table.ts';
import { readTable } from '../catalog/read-catalog.ts';
import { quoteIdentifier } from '../compile/literal.ts';
import type { FillColumn } from '../compile/step.ts';
import type { Traits } from '../variant.ts';

/** Rows that one statement locks and logs. */
const BATCH_ROWS = 5_000;

/** Sets a column where it is NULL, in batches, so that other sessions can write in between. */
export async function runFill(
  exec: ExecSql,
  traits: Traits,
  plan: FillColumn,
  onProgress?: (progress: Progress) => void,
): Promise<void> {
  const table = quoteIdentifier(plan.table);
  const column = quoteIdentifier(plan.column);
  const found = await readTable(exec, traits, plan.table);
  // Assigned to itself, an ON UPDATE column keeps its value: this is not an update by a user.
  const unchanged = found.columns
    .filter(({ extra }) => /on update/i.test(extra))
    .map(({ name }) => quoteIdentifier(name));
  const set = [`${column} = ${plan.value}`, ...unchanged.map((name) => `${name} = ${name}`)];
  const update = `UPDATE ${table} SET ${set.join(', ')} WHERE ${column} IS NULL`;
  const key = batchKey(found);
  const total = onProgress ? await countAll(exec, table) : 0;
  let done = 0;
  const report = (rows: number) => {
    done += rows;
    onProgress?.({ collection: plan.table, done, total: Math.max(total, done) });
  };
  if (key === undefined) return fillUnordered(exec, `${update} AND (${plan.value}) IS NOT NULL`, report);
  for (let after = '', last = false; !last; after = ` AND ${key} > @svc_from`) {
    const [bound] = await rowsOf(
      exec,
      `SET @svc_to = (SELECT ${key} FROM ${table} WHERE TRUE${after} ORDER BY ${key} LIMIT 1 OFFSET ${BATCH_ROWS - 1}); SELECT @svc_to IS NULL AS last`,
    );
    last = Number(bound?.last) === 1;
    const startedAt = performance.now();
    await exec(`${update}${after}${last ? '' : ` AND ${key} <= @svc_to`}; SET @svc_from = @svc_to`);
    if (last) break;
    report(BATCH_ROWS);
    await restAfter(performance.now() - startedAt);
  }
}

/** The statistics of the server may be those from before the column was added. */
async function countAll(exec: ExecSql, table: string): Promise<number> {
  const [row] = await rowsOf(exec, `SELECT COUNT(*) AS counted FROM ${table}`);
  return Number(row?.counted);
}

/** Without a key, every batch starts from the beginning. `update` must exclude rows that would stay NULL. */
async function fillUnordered(exec: ExecSql, update: string, report: (rows: number) => void): Promise<void> {
  for (;;) {
    const startedAt = performance.now();
    const [result] = await exec(`${update} LIMIT ${BATCH_ROWS}`);
    if ((result?.count ?? 0) < BATCH_ROWS) return;
    report(BATCH_ROWS);
    await restAfter(performance.now() - startedAt);
  }
}

/** A primary key with values that a session variable compares as the column does; for example, not an enum. */
function batchKey({ indexes, columns }: CatalogTable): string | undefined {
  const [only, ...more] = indexes.find(({ name }) => name === PRIMARY_KEY)?.columns ?? [];
  const type = columns.find(({ name }) => name === only?.name)?.type ?? '';
  const isComparable = /^(tiny|small|medium|big)?int|^decimal|^(var)?(char|binary)|^date|^timestamp/.test(type);
  return only && more.length === 0 && isComparable ? quoteIdentifier(only.name) : undefined;
}
