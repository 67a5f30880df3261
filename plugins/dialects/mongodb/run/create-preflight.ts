import { TtlCache } from '../../shared/ttl-cache.ts';
import { type RegistryDocument, type RegistryEntry, registryCollection } from '../catalog/registry.ts';
import type { MongoSegment, MongoStep } from '../compile/step.ts';
import { alreadyExistsError } from '../connection/errors.ts';
import { type MongoServer, TIME_LIMIT } from '../connection/server.ts';

/** The state of a collection before it is created. */
export interface CreatePreflight {
  /** An earlier attempt announced it, and may have created it. */
  readonly announcedBefore: boolean;
  /** Written to the registry before the collection is created, to distinguish it from a collection of another program. */
  readonly announcement: readonly RegistryEntry[];
}

interface CollectionState {
  readonly exists: boolean;
  readonly entry: RegistryDocument | undefined;
}

/**
 * The preflights of all collections that the segments create, read with one request: one per collection would take as
 * long as building its indexes. A collection that an earlier step may have changed is read again.
 */
export class CreatePreflights {
  readonly #server: MongoServer;
  readonly #names: readonly string[];
  readonly #touched = new Set<string>();
  #ranRaw = false;
  readonly #all = new TtlCache(() => readStates(this.#server, this.#names));

  constructor(server: MongoServer, segments: readonly MongoSegment[]) {
    this.#server = server;
    const steps = segments.flatMap(({ statements }) => statements.map(({ run }) => run));
    this.#names = steps.flatMap((step) => (step.kind === 'create' ? [step.collection] : []));
  }

  /** Whether the step creates a collection that an earlier one may have changed: its registry entries come first. */
  needsFlush(step: MongoStep): boolean {
    return step.kind === 'create' && (this.#ranRaw || this.#touched.has(step.collection));
  }

  /** The preflight of the next step, if it creates a collection. Throws `collection_exists`. */
  async forStep(step: MongoStep): Promise<CreatePreflight | undefined> {
    // A raw command may change any collection.
    if (step.kind === 'raw') {
      this.#ranRaw = true;
      return undefined;
    }
    const { collection } = step;
    const isUntouched = !this.needsFlush(step);
    this.#touched.add(collection);
    if (step.kind === 'rename') this.#touched.add(step.to);
    if (step.kind !== 'create') return undefined;
    const { exists, entry } =
      (await (isUntouched ? this.#all.get() : readStates(this.#server, [collection]))).get(collection) ?? {};
    const announcedBefore = entry?.creating === true && entry.entry === step.entry;
    if (exists && !announcedBefore) throw alreadyExistsError(collection);
    return {
      announcedBefore,
      announcement: announcedBefore ? [] : [{ collection, entry: step.entry, creating: true }],
    };
  }
}

async function readStates(
  server: MongoServer,
  names: readonly string[],
): Promise<ReadonlyMap<string, CollectionState>> {
  const [entries, listed] = await Promise.all([
    registryCollection(server)
      .find({ _id: { $in: [...names] } }, TIME_LIMIT)
      .toArray(),
    server.db.listCollections({ name: { $in: [...names] } }, { nameOnly: true }).toArray(),
  ]);
  const existing = new Set(listed.map(({ name }) => name));
  const entryOf = new Map(entries.map((entry) => [entry._id, entry]));
  return new Map(names.map((name) => [name, { exists: existing.has(name), entry: entryOf.get(name) }]));
}
