import type { Segment } from '../../../core/dialect.ts';
import { Fresh } from '../../fresh.ts';
import { existingTables } from './home.ts';
import { versionsOf } from './note.ts';
import type { RunPlace } from './place.ts';
import type { Run } from './statement.ts';

/** What is known of a table before it is created. */
export interface Outset {
  readonly exists: boolean;
  /** Of what the registry says of it; 0 for nothing. */
  readonly version: number;
}

interface Found {
  readonly tables: ReadonlySet<string>;
  readonly versions: ReadonlyMap<string, number>;
}

/**
 * What is known of each table that segments create: asked for all of them at once, as long as no step before it has had
 * to do with the table. A read of its own that sees every lightweight transaction costs as much as one.
 */
export class Outsets {
  readonly #place: RunPlace;
  readonly #names: readonly string[];
  readonly #touched = new Set<string>();
  #foreign = false;
  readonly #all = new Fresh(() => this.#find());

  constructor(place: RunPlace, segments: readonly Segment[]) {
    this.#place = place;
    const runs = segments.flatMap(({ statements }) => statements.map(({ run }) => run as unknown as Run));
    this.#names = runs.flatMap((run) => (run.kind === 'ddl' && run.creates ? [run.table] : []));
  }

  /** Of the statement that comes next; undefined for one that creates no table, and where it has to be asked anew. */
  async next(run: Run): Promise<Outset | undefined> {
    // Words of a user may do anything.
    if (run.kind === 'words') {
      this.#foreign = true;
      return undefined;
    }
    if (run.kind === 'settle') return undefined;
    const { table } = run;
    const isKnown = !this.#foreign && !this.#touched.has(table);
    this.#touched.add(table);
    if (!isKnown || run.kind !== 'ddl' || !run.creates || this.#names.length === 1) return undefined;
    const { tables, versions } = await this.#all.found();
    return { exists: tables.has(table), version: versions.get(table) ?? 0 };
  }

  async #find(): Promise<Found> {
    const [tables, versions] = await Promise.all([
      existingTables(this.#place.session, this.#names),
      versionsOf(this.#place, this.#names),
    ]);
    return { tables, versions };
  }
}
