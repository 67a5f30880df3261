import type { Segment } from '../../../core/dialect.ts';
import { Fresh } from '../../fresh.ts';
import { BOUNDED } from './bounds.ts';
import { alreadyExists } from './errors.ts';
import type { Server } from './open.ts';
import { type RegistryDocument, registryOf, type Said } from './registry.ts';
import type { Step } from './step.ts';

/** What a collection is created on. */
export interface Outset {
  /** An attempt before this one announced it, and may have created it. */
  readonly begun: boolean;
  /** What tells it from one that somebody else made: said before it is created. */
  readonly announcement: readonly Said[];
}

interface Found {
  readonly there: boolean;
  readonly known: RegistryDocument | undefined;
}

/**
 * What is known of each collection that segments create: asked for all of them at once, as long as no step before it has
 * had to do with the collection. A look of its own for each would cost as much as its indexes.
 */
export class Outsets {
  readonly #server: Server;
  readonly #names: readonly string[];
  readonly #touched = new Set<string>();
  #foreign = false;
  readonly #all = new Fresh(() => findAll(this.#server, this.#names));

  constructor(server: Server, segments: readonly Segment[]) {
    this.#server = server;
    const steps = segments.flatMap(({ statements }) => statements.map(({ run }) => run as unknown as Step));
    this.#names = steps.flatMap((step) => (step.do === 'create' ? [step.collection] : []));
  }

  /** It creates a collection that a step before it may have had to do with: what that left has to be said first. */
  returns(step: Step): boolean {
    return step.do === 'create' && (this.#foreign || this.#touched.has(step.collection));
  }

  /** Of the step that comes next; undefined for one that creates nothing. Throws `collection_exists`. */
  async next(step: Step): Promise<Outset | undefined> {
    // Words of a user may do anything.
    if (step.do === 'command') {
      this.#foreign = true;
      return undefined;
    }
    const { collection } = step;
    const isFresh = !this.returns(step);
    this.#touched.add(collection);
    if (step.do === 'rename') this.#touched.add(step.to);
    if (step.do !== 'create') return undefined;
    const { there, known } =
      (await (isFresh ? this.#all.found() : findAll(this.#server, [collection]))).get(collection) ?? {};
    const begun = known?.making === true && known.entry === step.entry;
    if (there && !begun) throw alreadyExists(collection);
    return { begun, announcement: begun ? [] : [{ collection, entry: step.entry, making: true }] };
  }
}

async function findAll(server: Server, names: readonly string[]): Promise<ReadonlyMap<string, Found>> {
  const [entries, listed] = await Promise.all([
    registryOf(server)
      .find({ _id: { $in: [...names] } }, BOUNDED)
      .toArray(),
    server.db.listCollections({ name: { $in: [...names] } }, { nameOnly: true }).toArray(),
  ]);
  const there = new Set(listed.map(({ name }) => name));
  const known = new Map(entries.map((entry) => [entry._id, entry]));
  return new Map(names.map((name) => [name, { there: there.has(name), known: known.get(name) }]));
}
