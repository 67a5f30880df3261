import { errorMessage, SvcError } from '../../errors.ts';
import { allRows, anyDefinition, type RecordStore } from '../../records.ts';
import { ensureTableSet, type StorageBackend, type StoreOwner } from '../backend.ts';
import type { SealKey, SealPublicKey } from './key.ts';
import { openRequests, SEALS_VERSION, type SealRow, seals } from './schema.ts';
import { createSeal, headerDigest, isSealHeader, type Seal, type SealInput } from './seal.ts';
import type { SealSink } from './sink.ts';
import { StoredSeals, sealId } from './stored-seals.ts';

/** By the names in the configuration. */
export type SealSinks = ReadonlyMap<string, SealSink>;

/** The key that signs, and those that have signed before. */
export interface SealKeys {
  readonly key: SealKey;
  readonly earlier?: readonly SealPublicKey[];
}

const WRITE_TIMEOUT_MS = 30_000;

/** The seals of one store, and the sinks that have them too. */
export class SealLog {
  readonly #rows: RecordStore<SealRow>;
  readonly #owner: StoreOwner;
  readonly #key: SealKey;
  readonly stored: StoredSeals;
  readonly #sinks: SealSinks;

  /** Creates the tables of a store that was never sealed. */
  static async open(backend: StorageBackend, owner: StoreOwner, keys: SealKeys, sinks: SealSinks): Promise<SealLog> {
    const definitions = [anyDefinition(seals), anyDefinition(openRequests)];
    await ensureTableSet(backend, { id: 'seals', version: SEALS_VERSION, definitions }, owner);
    return new SealLog(backend, owner, keys, sinks);
  }

  private constructor(backend: StorageBackend, owner: StoreOwner, { key, earlier = [] }: SealKeys, sinks: SealSinks) {
    this.#rows = backend.records(seals);
    this.#owner = owner;
    this.#key = key;
    this.stored = new StoredSeals(backend, [key, ...earlier]);
    this.#sinks = sinks;
  }

  /** Stores the next seal; if another process does so first, the one after it. `send` gives it to the sinks. */
  async append({ at, requests, complete }: Pick<SealInput, 'at' | 'requests' | 'complete'>): Promise<Seal> {
    const { product, env } = this.#owner;
    for (let before = await this.stored.last(); ; before = await this.stored.last()) {
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
    const last = (await this.stored.last())?.seal ?? 0;
    const others: [name: string, sink: SealSink][] = [];
    for (const [name, sink] of this.#sinks) {
      if (sink.last) await this.#complete(name, sink, last);
      else others.push([name, sink]);
    }
    for await (const { record, version } of allRows(this.#rows, 'byState', { equals: { state: 'new' }, limit: 20 })) {
      const seal = this.stored.verified(record);
      for (const [name, sink] of others) await write(name, sink, seal);
      await this.#rows.replace(record.sealId, version, { ...record, state: 'sent' });
    }
  }

  /** Writes what the sink lacks, up to the seal `last`. */
  async #complete(name: string, sink: SealSink, last: number): Promise<void> {
    const has = await attempt(name, 'cannot be read', async () => sink.last?.());
    if (has) {
      if (!isSealHeader(has)) throw brokenError(name, 'What the sink has last is not a seal.');
      const stored = await this.stored.get(has.seal);
      if (!stored) throw brokenError(name, `The last seal of the sink is ${has.seal}, which the store does not have.`);
      if (headerDigest(stored) !== headerDigest(has))
        throw brokenError(name, `Seal ${has.seal} of the store is not that of the sink.`);
    }
    for (let number = (has?.seal ?? 0) + 1; number <= last; number += 1) {
      const seal = await this.stored.get(number);
      if (!seal) throw brokenError(name, `The store has no seal ${number}, but later ones.`);
      await write(name, sink, seal);
    }
  }
}

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
    state: 'No further seal was made.',
    next: [
      'Find out who wrote to the database, or whether it was restored from a backup.',
      'svc approvals verify    names what differs',
      `After a restore: keep what the sink has, and set approvals.seals.sinks.${name} to an empty one.`,
    ],
  });
}
