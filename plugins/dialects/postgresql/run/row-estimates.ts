import type { ExecSql } from '../../sql/session.ts';
import { qualified } from '../compile/names.ts';
import { estimateRows } from './row-count.ts';

/** The rows of tables as they are before a run, each read once. */
export class RowEstimates {
  readonly #exec: ExecSql;
  readonly #schema: string;
  readonly #known = new Map<string, number>();

  /** `schema` is quoted, with its dot. */
  constructor(exec: ExecSql, schema: string) {
    this.#exec = exec;
    this.#schema = schema;
  }

  async of(table: string): Promise<number> {
    const known = this.#known.get(table) ?? (await estimateRows(this.#exec, qualified(table, this.#schema)));
    this.#known.set(table, known);
    return known;
  }
}
