import { type ExecSql, rowsOf } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/grammar.ts';
import { quoteLiteral } from '../compile/literal.ts';

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

  /** By the statistics; of a table that was never analyzed, by counting. 0 for a table that the run renames. */
  async of(table: string): Promise<number> {
    const known = this.#known.get(table) ?? (await this.#read(`${this.#schema}${quoteIdentifier(table)}`));
    this.#known.set(table, known);
    return known;
  }

  async #read(table: string): Promise<number> {
    const [found] = await rowsOf(
      this.#exec,
      `SELECT reltuples AS rows FROM pg_class WHERE oid = to_regclass(${quoteLiteral(table)})`,
    );
    if (!found || Number(found.rows) > 0) return Number(found?.rows ?? 0);
    const [counted] = await rowsOf(this.#exec, `SELECT count(*) AS rows FROM ${table}`);
    return Number(counted?.rows);
  }
}
