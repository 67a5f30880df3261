import { setTimeout as wait } from 'node:timers/promises';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { agreed } from './agreement.ts';
import { readCatalog } from './catalog.ts';
import { refuseUnconverted } from './check.ts';
import { existing, isUnknown, lost } from './errors.ts';
import { columnsIn } from './home.ts';
import { introspect } from './introspect.ts';
import { copyLast } from './move.ts';
import { quote } from './names.ts';
import { forget, noteOf } from './note.ts';
import type { Outset } from './outsets.ts';
import { type RunPlace, UNLOCKED } from './place.ts';
import type { Registered } from './registry.ts';
import type { Change } from './seat.ts';
import type { Session } from './session.ts';
import type { Ddl, Settle } from './statement.ts';
import { readType } from './types.ts';

const SETTLES_MS = 10_000;

/** What is looked at before a statement is sent, all at once. */
export interface Ready {
  /** What the registry has to say from now on. */
  readonly notes: readonly Change[];
  /** An attempt before this one sent it already. */
  readonly started?: true;
}

/** Every node has the same schema, and nothing stands in the way of the statement. */
export async function readyDdl(place: RunPlace, ddl: Ddl, outset?: Outset): Promise<Ready> {
  const { session, settings } = place;
  const [note, started] = await Promise.all([
    ddl.registered && announced(place, ddl, ddl.registered, outset),
    ddl.resumes === true && isClaimed(place, ddl),
    agreed(session, settings.agreementTimeoutMs),
    ddl.creates && refuseExisting(session, ddl.table, outset),
    ddl.empty && refuseRows(session, ddl),
    refuseCopy(place, ddl),
    refuseDropped(session, ddl),
  ]);
  return { notes: note ? [note] : [], ...(started && { started }) };
}

/** One change of the schema, and the catalog where its answer was lost. */
export async function runDdl(place: RunPlace, ddl: Ddl, epoch: number, { started }: Ready): Promise<void> {
  const { session, lease } = place;
  if (!started) {
    if (ddl.copied) await copyLast(place, ddl.copied, epoch);
    if (epoch !== UNLOCKED) await lease.assure(epoch);
    await send(place, ddl.cql, () => stands(session, ddl));
  }
  if ('index' in ddl.effect && ddl.effect.target !== null) await queryable(place, ddl.effect.index);
  if ('table' in ddl.effect) await forget(place, ddl.table);
}

async function announced(place: RunPlace, ddl: Ddl, said: Registered, outset: Outset | undefined): Promise<Change> {
  if (!('table' in ddl.effect)) return noteOf(place, ddl.table, said, outset?.version);
  const [row] = await place.session.rows(
    'SELECT id FROM system_schema.tables WHERE keyspace_name = ? AND table_name = ?',
    [place.session.keyspace, ddl.table],
  );
  return noteOf(place, ddl.table, { ...said, ...(row && { dropping: String(row.id) }) });
}

/** What an attempt that was interrupted did not wait for. */
export async function settle(place: RunPlace, { index }: Settle): Promise<void> {
  await agreed(place.session, place.settings.agreementTimeoutMs);
  if (index !== undefined) await queryable(place, index);
}

/** Words of a user: nobody knows what they change, so what became of a lost one only they can say. */
export async function runWords(place: RunPlace, cql: string, epoch: number): Promise<void> {
  await agreed(place.session, place.settings.agreementTimeoutMs);
  if (epoch !== UNLOCKED) await place.lease.assure(epoch);
  await send(place, cql, async () => false);
}

/**
 * After an error that does not say what became of it, and after a wait for agreement in vain, a statement may still
 * take effect: where the catalog does not show it within some seconds, the next run finds out.
 */
async function send({ session, settings }: RunPlace, cql: string, done: () => Promise<boolean>): Promise<void> {
  try {
    await session.text(cql);
  } catch (error) {
    if (!isUnknown(error)) throw error;
    if (!(await settles(done))) throw lost(error);
  }
  try {
    await agreed(session, settings.agreementTimeoutMs);
  } catch (error) {
    throw isSvcError(error) ? lost(error) : error;
  }
}

async function settles(done: () => Promise<boolean>): Promise<boolean> {
  const deadline = performance.now() + SETTLES_MS;
  for (;;) {
    if (await done().catch(() => false)) return true;
    if (performance.now() > deadline) return false;
    await wait(200);
  }
}

/** Whether the catalog shows what the statement does: table and columns are read together, either can be there alone. */
async function stands(session: Session, { table, effect }: Ddl): Promise<boolean> {
  const [found] = await readCatalog(session, [table]);
  if ('table' in effect) return found === undefined;
  if ('index' in effect) {
    const index = found?.indexes.find(({ name }) => name === effect.index);
    return effect.target === null ? index === undefined : index !== undefined;
  }
  return (
    found !== undefined &&
    Object.entries(effect.columns).every(([name, type]) => (found.columns.get(name)?.type ?? null) === type)
  );
}

/** An attempt before this one has come further than to say what it is about to do. */
async function isClaimed(place: RunPlace, ddl: Ddl): Promise<boolean> {
  if (!(await stands(place.session, ddl))) return false;
  const known = (await introspect(place.session, [ddl.table])).get(ddl.table);
  const names = 'columns' in ddl.effect ? Object.keys(ddl.effect.columns) : [];
  const claims = new Map(ddl.registered?.fields.map((field) => [field.name, field]));
  // What replaces another one is hidden while that is there: a column that nobody announced would be seen.
  return names.every((name) => {
    const claim = claims.get(name);
    const seen = known?.fields.get(name);
    return claim?.replaces !== undefined ? seen === undefined : JSON.stringify(seen) === JSON.stringify(claim);
  });
}

/** Looked at before the registry says anything of it: the table that is there may be another one. */
async function refuseExisting(session: Session, table: string, outset: Outset | undefined): Promise<void> {
  if (outset?.exists ?? (await columnsIn(session, table)).size > 0) throw existing(table);
}

async function refuseRows(session: Session, { table, effect }: Ddl): Promise<void> {
  const columns = await columnsIn(session, table);
  const [column] = columns.keys();
  if (column === undefined) return;
  const rows = await session.rows(`SELECT ${quote(column)} FROM ${quote(table)} LIMIT 1`);
  if (rows.length === 0) return;
  const [field] = 'columns' in effect ? Object.keys(effect.columns) : [];
  throw new SvcError('data_violates', `The table "${table}" has rows, and "${field}" is required without a default.`, {
    why: 'They would have no value.',
    next: ['Give the field a default, or add it without "required", fill it, and make it required then.'],
  });
}

async function refuseCopy(place: RunPlace, { table, copies, converted }: Ddl): Promise<void> {
  if (copies !== undefined) await refuseUncopied(place.session, table, copies);
  if (converted) await refuseUnconverted(place, table, converted);
}

/** The new column is an ordinary one of a type that svc makes: another one would become that, or could not be read. */
async function refuseUncopied(session: Session, table: string, column: string): Promise<void> {
  const [found] = await readCatalog(session, [table]);
  const { kind, type } = found?.columns.get(column) ?? {};
  if (type === undefined || (kind !== 'static' && !readType(type).inexact)) return;
  const what = kind === 'static' ? 'It is static' : `It has the type ${type}, which svc does not make`;
  throw new SvcError('not_supported', `The column "${table}.${column}" cannot be copied.`, {
    why: `${what}: the new column would be another one to your application.`,
    next: [
      "Keep its name. Or make the new column with raw('cassandra', …), let your application write both, copy the values, and drop the old one.",
    ],
  });
}

/** A name is refused for ever with another type than it was dropped with; only another name helps. */
async function refuseDropped(session: Session, { table, effect }: Ddl): Promise<void> {
  if (!('columns' in effect)) return;
  const added = Object.entries(effect.columns).filter(([, type]) => type !== null);
  if (added.length !== 1) return;
  for (const [name, type] of added) {
    const [row] = await session.rows(
      'SELECT type FROM system_schema.dropped_columns WHERE keyspace_name = ? AND table_name = ? AND column_name = ?',
      [session.keyspace, table, name],
    );
    if (!row || row.type === type || COMPATIBLE.has(`${String(row.type)} ${type}`)) continue;
    throw new SvcError('not_supported', `"${table}" can have no field "${name}" of that type any more.`, {
      why: `A column of that name and the type ${String(row.type)} was dropped; Cassandra refuses the name with the type ${type} for ever.`,
      next: ['Use another name, or the type it had.'],
    });
  }
}

const COMPATIBLE: ReadonlySet<string> = new Set([
  'bigint timestamp',
  'timestamp bigint',
  'ascii text',
  ...['text', 'varint', 'date', 'decimal', 'time'].map((type) => `${type} blob`),
  'list<text> list<blob>',
]);

/** Reads through an index fail on a node that still builds it. */
async function queryable({ session, settings }: RunPlace, index: string): Promise<void> {
  const cql = `SELECT index_name FROM system."IndexInfo" WHERE table_name = '${session.keyspace}' AND index_name = '${index}'`;
  const deadline = performance.now() + settings.indexTimeoutMs;
  for (let pause = 5; ; pause = Math.min(pause * 2, 1000)) {
    const nodes = await session.everywhere(cql);
    const building = [...nodes].filter(([, rows = []]) => rows.length === 0).map(([address]) => address);
    if (nodes.size > 0 && building.length === 0) return;
    if (performance.now() > deadline) {
      throw new SvcError('connection_lost', `The index "${index}" is not built yet.`, {
        why: `After ${settings.indexTimeoutMs} ms it is not known to be built on ${building.join(', ') || 'any node'}.`,
        next: ['Run the command again: it waits on.'],
      });
    }
    await wait(pause);
  }
}
