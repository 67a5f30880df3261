import type { RecordStore } from '../records.ts';
import type { StoreClock } from './store-clock.ts';

interface Revocable {
  readonly state: string;
  readonly body: { readonly revokedAt?: string };
}

/** Marks a row as revoked, and returns it as it then is: a second time changes nothing. Undefined if there is no such row. */
export async function revokeRow<R extends Revocable>(
  rows: RecordStore<R>,
  clock: StoreClock,
  key: string,
): Promise<R | undefined> {
  for (;;) {
    const found = await rows.get(key);
    if (!found) return undefined;
    const { record, version } = found;
    if (record.state === 'revoked') return record;
    const revokedAt = new Date(await clock.readNow()).toISOString();
    const revoked: R = { ...record, state: 'revoked', body: { ...record.body, revokedAt } };
    if ((await rows.replace(key, version, revoked)) === 'replaced') return revoked;
  }
}
