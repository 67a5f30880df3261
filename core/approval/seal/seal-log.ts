import { errorMessage, SvcError } from '../../errors.ts';
import { metaTable } from '../../migration/history-table.ts';
import { allRows, anyDefinition, type RecordStore } from '../../records.ts';
import { ensureTableSet, type StorageBackend, type StoreOwner } from '../backend.ts';
import type { SealKey } from './key.ts';
import { openRequests, SEALS_VERSION, type SealRow, seals } from './schema.ts';
import { createSeal, headerDigest, isSealHeader, type Seal, type SealInput } from './seal.ts';
import type { SealSink } from './sink.ts';

/** By the names in the configuration. */
export type SealSinks = ReadonlyMap<string, SealSink>;

const WRITE_TIMEOUT_MS = 30_000;

/** The seals of one store, and the sinks that have them too. */
export class SealLog {
  readonly #rows: RecordStore<SealRow>;
  readonly #owner: StoreOwner;
  readonly #key: SealKey;
  readonly #sinks: SealSinks;

  /** Creates the tables of a store that was never sealed. */
  static async open(backend: StorageBackend, owner: StoreOwner, key: SealKey, sinks: SealSinks): Promise<SealLog> {
    const definitions = [anyDefinition(seals), anyDefinition(openRequests)];
    await ensureTableSet(backend, { id: 'seals', version: SEALS_VERSION, definitions }, owner);
    return new SealLog(backend, owner, key, sinks);
  }

  private constructor(backend: StorageBackend, owner: StoreOwner, key: SealKey, sinks: SealSinks) {
    this.#rows = backend.records(seals);
    this.#owner = owner;
    this.#key = key;
    this.#sinks = sinks;
  }

  /** The last seal in the store. An index may be late: what follows is read by its number. */
  async last(): Promise<Seal | undefined> {
    return lastSeal(this.#rows);
  }

  async get(seal: number): Promise<Seal | undefined> {
    return (await this.#rows.get(sealId(seal)))?.record.body;
  }

  /** Stores the next seal; if another process does so first, the one after it. `send` gives it to the sinks. */
  async append({ at, requests, complete }: Pick<SealInput, 'at' | 'requests' | 'complete'>): Promise<Seal> {
    const { product, env } = this.#owner;
    for (let before = await this.last(); ; before = await this.last()) {
      const seal = createSeal(
        {
          seal: (before?.seal ?? 0) + 1,
          at,
          product,
          env,
          previous: before ? headerDigest(before) : null,
          ...(complete && { complete }),
          requests,
        },
        this.#key,
      );
      const row = { sealId: sealId(seal.seal), state: 'new', body: seal } as const;
      if ((await this.#rows.insert(row)) === 'inserted') return seal;
    }
  }

  /**
   * Writes every seal to the sinks that lack it. Throws `audit_broken` if a sink has a seal that the store lacks or has in
   * another form, and `seal_undelivered` if one cannot be read or written.
   */
  async send(): Promise<void> {
    const last = (await this.last())?.seal ?? 0;
    const others: [name: string, sink: SealSink][] = [];
    for (const [name, sink] of this.#sinks) {
      if (sink.last) await this.#complete(name, sink, last);
      else others.push([name, sink]);
    }
    for await (const { record, version } of allRows(this.#rows, 'byState', { equals: { state: 'new' }, limit: 20 })) {
      for (const [name, sink] of others) await write(name, sink, record.body);
      await this.#rows.replace(record.sealId, version, { ...record, state: 'sent' });
    }
  }

  /** Writes what the sink lacks, up to the seal `last`. */
  async #complete(name: string, sink: SealSink, last: number): Promise<void> {
    const has = await attempt(name, 'cannot be read', async () => sink.last?.());
    if (has) {
      if (!isSealHeader(has)) throw brokenError(name, 'What the sink has last is not a seal.');
      const stored = await this.get(has.seal);
      if (!stored) throw brokenError(name, `The last seal of the sink is ${has.seal}, which the store does not have.`);
      if (headerDigest(stored) !== headerDigest(has))
        throw brokenError(name, `Seal ${has.seal} of the store is not that of the sink.`);
    }
    for (let number = (has?.seal ?? 0) + 1; number <= last; number += 1) {
      const seal = await this.get(number);
      if (!seal) throw brokenError(name, `The store has no seal ${number}, but later ones.`);
      await write(name, sink, seal);
    }
  }
}

/** Whether a store was ever sealed: only then does it have the tables. */
export async function isSealed(backend: Pick<StorageBackend, 'records'>): Promise<boolean> {
  return (await backend.records(metaTable).get('seals')) !== undefined;
}

/** Every seal of a store, oldest first; nothing if it was never sealed. */
export async function* storedSeals(backend: StorageBackend): AsyncGenerator<Seal> {
  if (!(await isSealed(backend))) return;
  const rows = backend.records(seals);
  const last = await lastSeal(rows);
  for (let number = 1; number <= (last?.seal ?? 0); number += 1) {
    const found = await rows.get(sealId(number));
    // A missing one is found by its number.
    if (found) yield found.record.body;
  }
}

/** The last one first. */
export async function* storedSealsBackwards(backend: Pick<StorageBackend, 'records'>): AsyncGenerator<Seal> {
  if (!(await isSealed(backend))) return;
  const rows = backend.records(seals);
  const last = await lastSeal(rows);
  if (last) yield last;
  for (let number = (last?.seal ?? 1) - 1; number > 0; number -= 1) {
    const found = await rows.get(sealId(number));
    if (found) yield found.record.body;
  }
}

async function lastSeal(rows: RecordStore<SealRow>): Promise<Seal | undefined> {
  let last: Seal | undefined;
  for (const state of ['new', 'sent'] as const) {
    const { records } = await rows.page('byState', { equals: { state }, direction: 'desc', limit: 1 });
    const found = records[0]?.record.body;
    if (found && found.seal > (last?.seal ?? 0)) last = found;
  }
  for (;;) {
    const next = await rows.get(sealId((last?.seal ?? 0) + 1));
    if (!next) return last;
    last = next.record.body;
  }
}

/** Sorts as the numbers do. */
const sealId = (seal: number): string => `seal_${String(seal).padStart(12, '0')}`;

function write(name: string, sink: SealSink, seal: Seal): Promise<void> {
  const signal = AbortSignal.timeout(WRITE_TIMEOUT_MS);
  return attempt(name, `did not take seal ${seal.seal}`, () => sink.write(seal, signal));
}

async function attempt<T>(name: string, failed: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new SvcError('seal_undelivered', `The sink "${name}" of approvals.seals ${failed}.`, {
      why: errorMessage(error),
      state: 'What was sealed is in the store, and is written to the sink by the next `svc approvals seal`.',
      next: ['svc approvals seal    tries again'],
      cause: error,
    });
  }
}

function brokenError(name: string, why: string): SvcError {
  return new SvcError('audit_broken', `The seals of the store are not those of the sink "${name}".`, {
    why,
    state: 'Nothing was sealed.',
    next: [
      'Find out who wrote to the database, or whether it was restored from a backup.',
      'svc approvals verify    names what differs',
      `After a restore: keep what the sink has, and set approvals.seals.sinks.${name} to an empty one.`,
    ],
  });
}
