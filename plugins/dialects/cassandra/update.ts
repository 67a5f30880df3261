import type { UpdateJob, UpdateResult } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import type { Field } from '../../../core/schema/model.ts';
import { refuseReadBack, sourcesOf } from '../../read-back.ts';
import { readCatalog } from './catalog.ts';
import { keyColumns, keyOf } from './key.ts';
import { quote } from './names.ts';
import { type Counted, Progress } from './progress.ts';
import { now } from './records.ts';
import { assignmentsOf, conditionsOf } from './row.ts';
import { each, partitionOf, type Scan, scan } from './scan.ts';
import { decided } from './seat.ts';
import type { Row, Session } from './session.ts';
import type { Settings } from './settings.ts';
import { isForeign } from './types.ts';
import { encode, type Writing } from './value.ts';

/** Times a row that another session changes in between is looked at again. */
const TRIES = 20;

/**
 * Row by row, each in a lightweight transaction: a plain UPDATE would bring back what was deleted since it was read,
 * and undo what was written. What conditions and values were read from must still be there.
 */
export async function update(session: Session, settings: Settings, job: UpdateJob): Promise<UpdateResult> {
  const { collection, table, set, where } = job;
  const writing: Writing = { types: session.types, moment: await now(session) };
  const key = keyOf(collection);
  const keys = keyColumns(key);
  refuse(job, keys, writing);
  await refuseForeign(session, job);
  const fieldOf = (name: string): Field => {
    const field = collection.fields.get(name);
    if (!field) throw new Error(`${table} has no field ${name}`);
    return field;
  };
  const read = [...new Set([...where.map(({ field }) => field), ...set.flatMap(sourcesOf)])].filter(
    (name) => !keys.includes(name),
  );
  const columns = [...new Set([...keys, ...read, ...set.map(({ field }) => field)])];
  const holds = conditionsOf(where, fieldOf, writing);
  const valuesOf = assignmentsOf(set, fieldOf, writing);
  const byKey = keys.map((name) => `${quote(name)} = ?`).join(' AND ');
  const again = `SELECT ${columns.map(quote).join(', ')} FROM ${quote(table)} WHERE ${byKey}`;

  /** Whether it matched, and whether that changed it. */
  const one = async (first: Row): Promise<'changed' | 'same' | undefined> => {
    let row: Row | undefined = first;
    for (let left = TRIES; row !== undefined && holds(row); left -= 1) {
      const values = valuesOf(row);
      if (values === undefined) return 'same';
      const at = keys.map((name) => first[name]);
      // A condition that is NULL holds for a row that is gone too.
      const guards = read.some((name) => row?.[name] != null)
        ? read.filter((name) => fieldOf(name).type !== 'array')
        : [];
      const sure = guards.some((name) => row?.[name] != null);
      const condition = sure ? guards.map((name) => `${quote(name)} = ?`).join(' AND ') : 'EXISTS';
      const names = Object.keys(values);
      const cql = `UPDATE ${quote(table)} SET ${names.map((name) => `${quote(name)} = ?`).join(', ')} WHERE ${byKey} IF ${condition}`;
      const sent = [...Object.values(values), ...at, ...(sure ? guards.map((name) => row?.[name] ?? null) : [])];
      const done = await decided(session, { cql, values: sent }, async () => {
        const [found] = await session.serially(again, at);
        return found !== undefined && valuesOf(found) === undefined ? true : undefined;
      });
      if (done) return 'changed';
      if (left === 0) throw contended(table);
      [row] = await session.serially(again, at);
    }
    return undefined;
  };

  const progress = new Progress(session, settings, table, job.key, false);
  const { cursor, ...counted } = await progress.begin();
  /** Of the partition at the cursor, where whoever goes on from there does, and counts, all of it again. */
  let open: Counted = { matched: 0, modified: 0 };
  const close = () => {
    counted.matched += open.matched;
    counted.modified += open.modified;
    open = { matched: 0, modified: 0 };
  };
  const whole: Scan = { table, partition: key.partition, selected: columns.map(quote) };
  const through = async (pages: Scan, isAgain: boolean) => {
    let last: string | undefined;
    for await (const page of scan(session, pages)) {
      refuseInterrupted(settings, counted.modified + open.modified);
      if (page.cursor !== undefined && page.cursor !== last) close();
      last = page.cursor ?? last;
      await each(page.rows, settings.concurrency, async (row) => {
        if (keys.some((name) => row[name] === null)) return; // a partition of static columns alone
        const outcome = await one(row);
        const among = job.clocked && partitionOf(row) === last ? open : counted;
        if (outcome === 'changed') among.modified += 1;
        if (outcome === 'changed' || (outcome === 'same' && !isAgain)) among.matched += 1;
      });
      if (!isAgain) await progress.reached(page.cursor, counted);
    }
    close();
  };
  await progress.during(async () => {
    await through({ ...whole, ...(cursor !== undefined && { from: cursor }) }, false);
    // What came since then to where the interrupted attempt had been, unless nothing tells it from what is done.
    if (cursor !== undefined && !job.clocked) await through({ ...whole, to: cursor }, true);
  });
  await progress.end();
  return counted;
}

function refuseInterrupted({ signal }: Settings, modified: number): void {
  if (!signal?.aborted) return;
  throw new SvcError('interrupted', 'The update was interrupted.', {
    state: `${modified} rows are changed.`,
    next: ['The same update again goes on from there.'],
  });
}

function contended(table: string): SvcError {
  return new SvcError('check_failed', `A row of "${table}" changes all the time.`, {
    why: `${TRIES} times another session was faster.`,
    next: ['The same update again goes on from there.'],
  });
}

/** What no row could take is refused before the first one is read. */
function refuse({ table, set, collection }: UpdateJob, keys: readonly string[], writing: Writing): void {
  refuseReadBack(set);
  const refusal = (code: 'not_supported' | 'data_violates', message: string, why: string) =>
    new SvcError(code, message, { why, state: 'Nothing was changed.' });
  for (const assignment of set) {
    const { field: name } = assignment;
    if (keys.includes(name)) {
      throw refusal(
        'not_supported',
        `"${table}.${name}" is part of the key: it cannot be updated.`,
        'The key says where a row lies.',
      );
    }
    const field = collection.fields.get(name);
    if (!field || !('value' in assignment)) continue;
    if (assignment.value === null && field.required) {
      throw refusal('data_violates', `"${table}.${name}" is required: it cannot be null.`, 'Its definition says so.');
    }
    encode(assignment.value, field, writing);
  }
}

/** Columns of tables that svc did not make, which the model tells of as something near. */
async function refuseForeign(session: Session, { table, set, where }: UpdateJob): Promise<void> {
  const [found] = await readCatalog(session, [table]);
  const refusal = (name: string, why: string) =>
    new SvcError('not_supported', `"${table}.${name}" is no column for db.update.`, {
      why,
      state: 'Nothing was changed.',
      next: ["Write the CQL: raw('cassandra', …) in a migration, or through your own driver."],
    });
  for (const { field } of set) {
    const { kind, type = '' } = found?.columns.get(field) ?? {};
    if (kind === 'static') throw refusal(field, 'It is static: a row cannot be given a value of its partition.');
    if (type === 'varint' || isForeign(type)) throw refusal(field, unmade(type));
  }
  for (const condition of where) {
    const type = found?.columns.get(condition.field)?.type ?? '';
    if (condition.value !== null && isForeign(type)) throw refusal(condition.field, unmade(type));
  }
}

const unmade = (type: string): string => `It has the type ${type}, which svc does not make.`;
