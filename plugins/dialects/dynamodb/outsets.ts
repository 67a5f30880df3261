import type { Segment } from '../../../core/dialect.ts';
import { type Outset, outsetOf } from './create.ts';
import { tableNames } from './introspect.ts';
import type { Work } from './move.ts';
import { type Entry, entriesOf, entryOf } from './registry.ts';
import { type Step, stepOf } from './step.ts';

type Create = Extract<Step, { do: 'create' }>;

/** Of so many tables the names are asked for together: the answer has a hundred names. */
const MANY = 10;
/** What was listed longer ago is not relied on. */
const FRESH_MS = 5_000;

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
  #listed: { readonly names: Promise<ReadonlySet<string>>; readonly at: number } | undefined;
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
    if (this.#touched.has(table)) {
      return outsetOf(this.#work, table, definition, entryOf(this.#work.state, table));
    }
    return outsetOf(this.#work, table, definition, this.#entry(table), this.#names());
  }

  #created(): string[] {
    const created = this.#steps.filter((step) => step.do === 'create').map((step) => step.table);
    return [...new Set(created)];
  }

  #names(): Promise<ReadonlySet<string>> | undefined {
    if (this.#created().length < MANY) return undefined;
    this.#listed ??= {
      names: tableNames(this.#work.api).then((names) => new Set(names)),
      at: performance.now(),
    };
    return performance.now() - this.#listed.at < FRESH_MS ? this.#listed.names : undefined;
  }

  async #entry(table: string): Promise<Entry | undefined> {
    const { api, state } = this.#work;
    this.#entries ??= entriesOf(api, state, this.#created());
    return (await this.#entries).get(table);
  }
}
