import type { Segment } from '../../../core/dialect.ts';
import { type Outset, outsetOf } from './create.ts';
import type { Work } from './move.ts';
import { type Entry, entriesOf, entryOf } from './registry.ts';
import { type Step, stepOf } from './step.ts';

type Create = Extract<Step, { do: 'create' }>;

/**
 * What is known of each table that segments create, in their order. Where one creation follows another it is looked up
 * while the one before is under way: a look of its own for each would cost as much as the table.
 */
export class Outsets {
  readonly #work: Work;
  readonly #steps: readonly Step[];
  #at = 0;
  /** Nobody but the holder of the lock writes entries, so those of all stay true until a step has to do with the table. */
  #entries: Promise<ReadonlyMap<string, Entry>> | undefined;
  readonly #touched = new Set<string>();
  #ahead: Promise<Outset> | undefined;

  constructor(work: Work, segments: readonly Segment[]) {
    this.#work = work;
    this.#steps = segments.flatMap(({ statements }) => statements.map(stepOf));
  }

  /** The next step creates a table that one before it had to do with: what that left has to be written first. */
  get returns(): boolean {
    const step = this.#steps[this.#at];
    return step?.do === 'create' && this.#touched.has(step.table);
  }

  /** Of the next step; undefined for one that creates no table. */
  async next(): Promise<Outset | undefined> {
    const step = this.#steps[this.#at++];
    const looked = this.#ahead;
    this.#ahead = undefined;
    if (!step || step.do === 'raw') return undefined;
    if (step.do !== 'create') {
      this.#touched.add(step.table);
      return undefined;
    }
    const outset = await (looked ?? this.#look(step));
    this.#touched.add(step.table);
    const following = this.#steps[this.#at];
    if (following?.do === 'create' && !this.#touched.has(following.table)) {
      this.#ahead = this.#look(following);
      // Told when its turn comes.
      this.#ahead.catch(() => undefined);
    }
    return outset;
  }

  #look({ table, definition }: Create): Promise<Outset> {
    return outsetOf(this.#work, table, definition, this.#entry(table));
  }

  async #entry(table: string): Promise<Entry | undefined> {
    const { api, state } = this.#work;
    if (this.#touched.has(table)) return entryOf(state, table);
    const created = () => this.#steps.filter((step) => step.do === 'create').map((step) => step.table);
    this.#entries ??= entriesOf(api, state, [...new Set(created())]);
    return (await this.#entries).get(table);
  }
}
