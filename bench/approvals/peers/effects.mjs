import pg from 'pg';

/** The effect of every contender's tool: a row in a table. A victim process kills itself before or after writing it. */
export class Effects {
  /** Start of each run's handler, `performance.now()`. */
  startedAt = new Map();
  #pool;
  #killMoment;

  /** @param killMoment `before` or `after` the effect; undefined to survive. */
  static async open(url, killMoment) {
    const effects = new Effects();
    effects.#pool = new pg.Pool({ connectionString: url, max: 4 });
    effects.#killMoment = killMoment;
    await effects.query('CREATE TABLE IF NOT EXISTS effects (run text NOT NULL, amount text NOT NULL)');
    return effects;
  }

  async pay(run, amount) {
    this.startedAt.set(run, performance.now());
    if (this.#killMoment === 'before') process.kill(process.pid, 'SIGKILL');
    await this.query('INSERT INTO effects VALUES ($1, $2)', [run, JSON.stringify(amount) ?? 'nothing']);
    if (this.#killMoment === 'after') process.kill(process.pid, 'SIGKILL');
    return { paid: amount };
  }

  /** The amounts paid for a run. */
  async of(run) {
    return (await this.query('SELECT amount FROM effects WHERE run = $1', [run])).map(({ amount }) => amount);
  }

  /** Bytes of all tables but this one, including indexes. */
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
