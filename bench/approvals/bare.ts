import pg from 'pg';

const TABLE = `CREATE TABLE bare (id text PRIMARY KEY, status text NOT NULL, agent text NOT NULL, execution text NOT NULL,
  expires_at timestamptz NOT NULL, body jsonb NOT NULL, version bigint NOT NULL);
CREATE INDEX ON bare (status, id); CREATE INDEX ON bare (status, agent, id); CREATE INDEX ON bare (execution, id)`;
const BODY = {
  tool: 'refund',
  parameters: { orderId: '1234', amount: 20, note: 'Arrived broken, the customer wants it back.' },
};

/** The minimum that stores a decision: the bare statements, sent with `pg` over `width` connections. */
export class Bare {
  readonly #clients: pg.Client[];
  #count = 0;

  private constructor(clients: pg.Client[]) {
    this.#clients = clients;
  }

  static async open(url: string, width: number): Promise<Bare> {
    const clients = Array.from({ length: width }, () => new pg.Client({ connectionString: url }));
    await Promise.all(clients.map((client) => client.connect()));
    await clients[0]?.query(TABLE);
    return new Bare(clients);
  }

  async create(lane = 0): Promise<string> {
    this.#count += 1;
    const id = `apr_${process.pid}_${this.#count}`;
    await this.#client(lane).query({
      name: 'create',
      text: `INSERT INTO bare VALUES ($1, 'waiting', 'payouts', $1, clock_timestamp() + interval '5 minutes', $2, 1)`,
      values: [id, BODY],
    });
    return id;
  }

  async decide(id: string, lane = 0): Promise<void> {
    await this.#client(lane).query({
      name: 'decide',
      text: `UPDATE bare SET status = 'approved', version = version + 1 WHERE id = $1 AND version = 1 AND expires_at > clock_timestamp()`,
      values: [id],
    });
  }

  async finish(id: string, lane = 0): Promise<void> {
    await this.#client(lane).query({
      name: 'finish',
      text: `UPDATE bare SET body = body || '{"result":"paid"}', version = version + 1 WHERE id = $1 AND version = 2`,
      values: [id],
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#clients.map((client) => client.end()));
  }

  #client(lane: number): pg.Client {
    return this.#clients[lane % this.#clients.length] as pg.Client;
  }
}
