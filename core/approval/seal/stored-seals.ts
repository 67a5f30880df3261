import { SvcError } from '../../errors.ts';
import { metaTable } from '../../migration/history-table.ts';
import type { RecordStore } from '../../records.ts';
import type { StorageBackend } from '../backend.ts';
import type { SealPublicKey } from './key.ts';
import { type SealRow, seals } from './schema.ts';
import { isSeal, type Seal, sealProblem } from './seal.ts';

type Backend = Pick<StorageBackend, 'records'>;

/** Whether a store was ever sealed: only then does it have the tables. */
export async function isSealed(backend: Backend): Promise<boolean> {
  return (await backend.records(metaTable).get('seals')) !== undefined;
}

/** Everything that is stored as a seal, oldest first, without a check; nothing if the store was never sealed. */
export async function* uncheckedSeals(backend: Backend): AsyncGenerator<unknown> {
  if (!(await isSealed(backend))) return;
  const rows = backend.records(seals);
  const last = await lastNumber(rows);
  for (let number = 1; number <= last; number += 1) {
    const found = await rows.get(sealId(number));
    if (found) yield found.record.body;
    else {
      // That some are missing is found by the number of the next one.
      yield (await rows.get(sealId(last)))?.record.body;
      return;
    }
  }
}

/** The seals of a store. Each is verified when it is read: `audit_broken` and, for an unknown key, `config_invalid`. */
export class StoredSeals {
  readonly #rows: RecordStore<SealRow>;
  readonly #keys: readonly SealPublicKey[];

  constructor(backend: Backend, keys: readonly SealPublicKey[]) {
    this.#rows = backend.records(seals);
    this.#keys = keys;
  }

  async last(): Promise<Seal | undefined> {
    return this.get(await lastNumber(this.#rows));
  }

  async get(seal: number): Promise<Seal | undefined> {
    const found = await this.#rows.get(sealId(seal));
    return found && this.verified(found.record);
  }

  /** The last one first. */
  async *backwards(): AsyncGenerator<Seal> {
    for (let number = await lastNumber(this.#rows); number > 0; number -= 1) {
      const found = await this.get(number);
      if (found) yield found;
    }
  }

  verified({ sealId: id, body }: SealRow): Seal {
    const problem = isSeal(body) && body.seal === numberOf(id) ? sealProblem(body, this.#keys) : 'is damaged';
    if (problem === undefined) return body;
    throw new SvcError('audit_broken', `Seal ${numberOf(id)} of the store was changed.`, {
      why: `It ${problem}.`,
      state: 'No further seal was made.',
      next: ['Find out who wrote to the database.', 'svc approvals verify    names what differs'],
    });
  }
}

/** The number of the last seal; 0 without one. An index may be late: what follows is read by its number. */
async function lastNumber(rows: RecordStore<SealRow>): Promise<number> {
  let last = 0;
  for (const state of ['new', 'sent'] as const) {
    const { records } = await rows.page('byState', { equals: { state }, direction: 'desc', limit: 1 });
    for (const { record } of records) last = Math.max(last, numberOf(record.sealId) || 0);
  }
  while (await rows.get(sealId(last + 1))) last += 1;
  return last;
}

const PREFIX = 'seal_';

/** Sorts as the numbers do. */
export const sealId = (seal: number): string => `${PREFIX}${String(seal).padStart(12, '0')}`;

const numberOf = (id: string): number => Number(id.slice(PREFIX.length));
