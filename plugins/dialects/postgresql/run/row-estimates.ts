import type { ExecSql } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/grammar.ts';
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
    const known =
      this.#known.get(table) ?? (await estimateRows(this.#exec, `${this.#schema}${quoteIdentifier(table)}`));
    this.#known.set(table, known);
    return known;
  }
}
