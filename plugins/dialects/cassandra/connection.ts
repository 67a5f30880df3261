import type { Connection } from '../../../core/dialect.ts';
import { refusal } from './errors.ts';
import { columnsIn } from './home.ts';
import { introspect, unreadable } from './introspect.ts';
import { Lease } from './lease.ts';
import { quote } from './names.ts';
import { ensure, now, recordStore } from './records.ts';
import { runSegments } from './run.ts';
import type { Session } from './session.ts';
import type { Settings } from './settings.ts';
import { update } from './update.ts';

export function connectionOver(session: Session, settings: Settings): Connection {
  const lease = new Lease(session, settings);
  const place = { session, settings, lease };
  const told = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      throw refusal(error);
    }
  };
  return {
    server: `Cassandra ${session.version}`,
    run: (segments, epoch, _tookMs, underway) => runSegments(place, segments, epoch, underway),
    query: (text) => told(() => session.text(text)),
    introspect: (collections) => told(() => introspect(session, collections)),
    unreadable: () => told(() => unreadable(session)),
    // The registry keeps what the catalog loses: nothing of a model goes.
    seen: async (model) => model,
    records: (definition) => recordStore(session, definition),
    ensure: (definitions) => told(() => ensure(session, settings, definitions)),
    update: (job) => told(() => update(session, settings, job)),
    now: () => told(() => now(session)),
    count: (collection, limit) =>
      told(async () => {
        const [column = ''] = (await columnsIn(session, collection)).keys();
        return (await session.rows(`SELECT ${quote(column)} FROM ${quote(collection)} LIMIT ?`, [limit])).length;
      }),
    exclusively: (work, options) => lease.exclusively(work, options),
    isLocked: () => told(() => lease.isHeld()),
    close: () => session.close(),
  };
}
