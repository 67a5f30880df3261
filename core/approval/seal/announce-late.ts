import { CLOCK, type RecordStore } from '../../records.ts';
import type { StorageBackend } from '../backend.ts';
import { createdNear } from '../request.ts';
import type { ApprovalRow } from '../schema.ts';
import { openRequests } from './schema.ts';
import { isSealed } from './stored-seals.ts';

/** The next search for new events begins with requests that were created this long before the last one. */
export const SEARCH_MARGIN_MS = 3_600_000;
/** A request without result is searched for new events this long after its last one. */
export const OPEN_MS = 86_400_000;

/** A search does not forget a request that was announced so shortly before it: the event may not be stored yet. */
export const ANNOUNCED_MS = 600_000;

/**
 * The requests of a store. What a search for new events would not find is announced before it is written: an event after
 * the result or long after the one before it, and a request whose id does not have the time of its creation.
 */
export function announcingLateEvents(
  store: RecordStore<ApprovalRow>,
  backend: Pick<StorageBackend, 'records'>,
): RecordStore<ApprovalRow> {
  const announce = async (requestId: string): Promise<void> => {
    if (!(await isSealed(backend))) return;
    const open = backend.records(openRequests);
    for (;;) {
      if ((await open.insert({ requestId, state: 'open', at: CLOCK, seal: 0 })) === 'inserted') return;
      const found = await open.get(requestId);
      if (found && (await open.replace(requestId, found.version, { ...found.record, at: CLOCK })) === 'replaced')
        return;
    }
  };
  return {
    get: (key) => store.get(key),
    page: (index, query) => store.page(index, query),
    remove: (key, version) => store.remove(key, version),
    async insert(record) {
      const row = record as ApprovalRow;
      if (!createdNear(row.requestId, row.body.timestamp, SEARCH_MARGIN_MS / 2)) await announce(row.requestId);
      return store.insert(record);
    },
    async replace(key, version, record, guard) {
      if (isLate(record as ApprovalRow)) await announce(key);
      return store.replace(key, version, record, guard);
    },
  };
}

/** Whether the last event of a row is one that a search may not expect. */
function isLate({ body: { events, timestamp } }: ApprovalRow): boolean {
  const last = events.at(-1);
  const before = events.at(-2);
  if (!last) return false;
  if (before?.type === 'finished' || before?.type === 'closed') return true;
  return Date.parse(last.at) - Date.parse(before?.at ?? timestamp) > OPEN_MS / 2;
}
