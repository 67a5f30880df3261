import type { Segment } from '../../../core/dialect.ts';
import type { Server } from './open.ts';
import { type RegistryDocument, registryOf } from './registry.ts';
import type { Step } from './step.ts';

/** What is known of a collection before it is created. */
export interface Outset {
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
  #all: Promise<ReadonlyMap<string, Outset>> | undefined;

  constructor(server: Server, segments: readonly Segment[]) {
    this.#server = server;
    const steps = segments.flatMap(({ statements }) => statements.map(({ run }) => run as unknown as Step));
    this.#names = steps.flatMap((step) => (step.do === 'create' ? [step.collection] : []));
  }

  /** Of the step that comes next; undefined for one that creates nothing. */
  async next(step: Step): Promise<Outset | undefined> {
    // Words of a user may do anything.
    if (step.do === 'command') {
      this.#foreign = true;
      return undefined;
    }
    const { collection } = step;
    const isFresh = !this.#foreign && !this.#touched.has(collection);
    this.#touched.add(collection);
    if (step.do === 'rename') this.#touched.add(step.to);
    if (step.do !== 'create') return undefined;
    if (!isFresh) return (await outsetsOf(this.#server, [collection])).get(collection);
    this.#all ??= outsetsOf(this.#server, this.#names);
    return (await this.#all).get(collection);
  }
}

async function outsetsOf(server: Server, names: readonly string[]): Promise<ReadonlyMap<string, Outset>> {
  const [entries, listed] = await Promise.all([
    registryOf(server)
      .find({ _id: { $in: [...names] } })
      .toArray(),
    server.db.listCollections({ name: { $in: [...names] } }, { nameOnly: true }).toArray(),
  ]);
  const there = new Set(listed.map(({ name }) => name));
  const known = new Map(entries.map((entry) => [entry._id, entry]));
  return new Map(names.map((name) => [name, { there: there.has(name), known: known.get(name) }]));
}
