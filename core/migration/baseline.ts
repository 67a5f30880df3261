import type { Adapter } from '../database/adapter.ts';
import { SvcError } from '../errors.ts';
import { CLOCK, type RecordWrite, recordWrite, type Writable } from '../records.ts';
import { replay } from '../schema/apply.ts';
import { version } from '../version.ts';
import { actor } from './actor.ts';
import { checksum } from './checksum.ts';
import { drift, withoutForeign } from './drift.ts';
import type { Execution } from './execution.ts';
import { type HistoryRow, history } from './history.ts';
import type { Migration } from './migration.ts';
import { unknownTag } from './planning.ts';
import { type Defined, reconcile, refuseTrouble } from './reconcile.ts';
import { auditWrite } from './resolve.ts';
import { retold } from './retelling.ts';
import { type SessionOptions, underLock } from './session.ts';
import { nameOfTag } from './tag.ts';
import { touches } from './touches.ts';

/** Records pending migrations as applied without running them, where the catalog shows that their work is there. */
export function baseline(
  adapter: Adapter,
  defined: readonly Defined[],
  options: SessionOptions & { readonly to?: string } = {},
): Promise<{ readonly tags: readonly string[] }> {
  if (options.to !== undefined && !defined.some(({ tag }) => tag === options.to)) {
    return Promise.reject(unknownTag(options.to, 'No file defines it.'));
  }
  return underLock(adapter, options, async (run) => {
    const standing = reconcile(defined, run.ledger);
    refuseTrouble(standing);
    const pending = standing.pending
      .filter(({ tag }) => options.to === undefined || tag <= options.to)
      .map(({ migration }) => migration);
    if (pending.length === 0) return { tags: [] };
    await refuseAbsent(run, pending);
    let seq = run.ledger.lastSeq;
    const writes = pending.flatMap((migration) => [auditWrite(migration, 'baseline'), write(run, migration, ++seq)]);
    const outcome = await adapter.connection.run([{ transactional: true, statements: [], writes }], run.epoch);
    if (outcome.failure) throw outcome.failure.error;
    return { tags: pending.map(({ tag }) => tag) };
  });
}

async function refuseAbsent({ adapter, ledger }: Execution, pending: readonly Migration[]): Promise<void> {
  const operations = pending.flatMap((migration) => migration.up);
  const { foreign } = retold((await ledger.migrations(adapter.connection)).map(({ migration }) => migration));
  const before = new Map(await ledger.model(adapter.connection));
  // Changed before they were adopted, they are known as they are.
  for (const operation of operations) {
    if (operation.type === 'createCollection' && foreign.has(operation.name)) before.delete(operation.name);
  }
  const model = replay(operations, before);
  const names = new Set(operations.flatMap(touches));
  const expected = new Map([...model].filter(([name]) => names.has(name)));
  const found = withoutForeign(await adapter.connection.introspect([...names]), model);
  const differences = await drift(adapter.connection, expected, found);
  if (differences.length === 0) return;
  throw new SvcError('drift', 'The database is not what the migrations would have made of it.', {
    why: differences.join('; '),
    state: 'Nothing was recorded.',
    next: ['svc db schema pull    writes the schema file and the migration that fit the database'],
    details: { differences },
  });
}

function write({ ledger, epoch }: Execution, migration: Migration, seq: number): RecordWrite {
  const known = ledger.entries.get(migration.tag)?.version;
  const record: Writable<HistoryRow> = {
    tag: migration.tag,
    seq,
    name: migration.name ?? nameOfTag(migration.tag),
    origin: 'file',
    status: 'completed',
    applied_at: CLOCK,
    rolled_back_at: null,
    // It never ran: that tells a rollback to keep its hands off.
    duration_ms: null,
    checksum: checksum(migration),
    migration,
    step: migration.up.length,
    steps: migration.up.length,
    error: null,
    sdk_version: version,
    applied_by: actor(),
    epoch,
    journal: null,
    started: false,
    found: null,
  };
  return recordWrite(history, record, known);
}
