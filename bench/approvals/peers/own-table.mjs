/** Stores the runs of a contender that has no storage. */
export class OwnTable {
  #effects;

  static async open(effects) {
    const table = new OwnTable();
    table.#effects = effects;
    await effects.query(
      'CREATE TABLE IF NOT EXISTS runs (id text PRIMARY KEY, state text NOT NULL, waits boolean NOT NULL)',
    );
    await effects.query('CREATE INDEX IF NOT EXISTS runs_waits ON runs (id) WHERE waits');
    return table;
  }

  async put(id, state, waits) {
    await this.#effects.query(
      'INSERT INTO runs VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET state = $2, waits = $3',
      [id, state, waits],
    );
  }

  async get(id) {
    const [row] = await this.#effects.query('SELECT state FROM runs WHERE id = $1', [id]);
    if (!row) throw new Error(`no run ${id}`);
    return row.state;
  }

  async waiting() {
    return (await this.#effects.query('SELECT id, state FROM runs WHERE waits ORDER BY id')).length;
  }

  /** Changes the stored amount. */
  async tamper(id) {
    await this.#effects.query(
      `UPDATE runs SET state = replace(replace(state, '\\"amount\\":42', '\\"amount\\":9999'), '"amount":42', '"amount":9999') WHERE id = $1`,
      [id],
    );
  }
}
