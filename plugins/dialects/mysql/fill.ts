import { type Exec, rowsOf } from '../../sql/session.ts';
import type { AskedFill } from './asked.ts';
import { type CatalogTable, readTable } from './catalog.ts';
import { PRIMARY } from './introspect.ts';
import { quote } from './quote.ts';
import type { Traits } from './traits.ts';

/** Rows that are locked and logged at once. */
const BATCH = 5_000;

/** Gives a column its value where it has none, a batch after the other, so that others can write in between. */
export async function fill(exec: Exec, traits: Traits, ask: AskedFill): Promise<void> {
  const table = quote(ask.table);
  const column = quote(ask.fill);
  const found = await readTable(exec, traits, ask.table);
  // The moment of the last update is no user's: a column that is told its own value does not take the clock's.
  const kept = found.columns.filter(({ extra }) => /on update/i.test(extra)).map(({ name }) => quote(name));
  const set = [`${column} = ${ask.with}`, ...kept.map((name) => `${name} = ${name}`)];
  const update = `UPDATE ${table} SET ${set.join(', ')} WHERE ${column} IS NULL`;
  const key = walkedBy(found);
  if (key === undefined) return fillAnywhere(exec, `${update} AND (${ask.with}) IS NOT NULL`);
  for (let behind = '', last = false; !last; behind = ` AND ${key} > @svc_from`) {
    const [bound] = await rowsOf(
      exec,
      `SET @svc_to = (SELECT ${key} FROM ${table} WHERE TRUE${behind} ORDER BY ${key} LIMIT 1 OFFSET ${BATCH - 1}); SELECT @svc_to IS NULL AS last`,
    );
    last = Number(bound?.last) === 1;
    await exec(`${update}${behind}${last ? '' : ` AND ${key} <= @svc_to`}; SET @svc_from = @svc_to`);
  }
}

/**
 * Without an order to go by, every batch looks for its rows from the beginning: those that would stay without a value
 * are no part of it, or it would find them again for ever.
 */
async function fillAnywhere(exec: Exec, update: string): Promise<void> {
  for (;;) {
    const [result] = await exec(`${update} LIMIT ${BATCH}`);
    if ((result?.count ?? 0) < BATCH) return;
  }
}

/** A primary key whose values a variable of the session holds and compares as the column does; those of enums are not. */
function walkedBy({ indexes, columns }: CatalogTable): string | undefined {
  const [only, ...more] = indexes.find(({ name }) => name === PRIMARY)?.columns ?? [];
  const type = columns.find(({ name }) => name === only?.name)?.type ?? '';
  const comparable = /^(tiny|small|medium|big)?int|^decimal|^(var)?(char|binary)|^date|^timestamp/.test(type);
  return only && more.length === 0 && comparable ? quote(only.name) : undefined;
}
