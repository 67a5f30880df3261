import pg from 'pg';

/** What the tool of every contender does: a row that says it happened. A victim dies beside it, as a kill -9 would. */
export class Effects {
  /** When the handler of a run began, `performance.now()`. */
  began = new Map();
  #pool;
  #dies;

  /** `dies`: `before` or `after` the effect. */
  static async open(url, dies) {
    const effects = new Effects();
    effects.#pool = new pg.Pool({ connectionString: url, max: 4 });
    effects.#dies = dies;
    await effects.query('CREATE TABLE IF NOT EXISTS effects (run text NOT NULL, amount text NOT NULL)');
    return effects;
  }

  async pay(run, amount) {
    this.began.set(run, performance.now());
    if (this.#dies === 'before') process.kill(process.pid, 'SIGKILL');
    await this.query('INSERT INTO effects VALUES ($1, $2)', [run, JSON.stringify(amount) ?? 'nothing']);
    if (this.#dies === 'after') process.kill(process.pid, 'SIGKILL');
    return { paid: amount };
  }

  /** The amounts that were paid for a run. */
  async of(run) {
    return (await this.query('SELECT amount FROM effects WHERE run = $1', [run])).map(({ amount }) => amount);
  }

  /** Bytes of every table but this one, indexes and all. */
  async bytes() {
    const [{ size }] = await this.query(
      `SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0) AS size FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r' AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' AND c.relname <> 'effects'`,
    );
    return Number(size);
  }

  async query(text, values) {
    return (await this.#pool.query(text, values)).rows;
  }

  close() {
    return this.#pool.end();
  }
}
