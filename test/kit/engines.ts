import type { Dialect } from '../../core/dialect.ts';
import { Kernel } from '../../core/kernel.ts';
import type { Target } from '../../core/migration/target.ts';
import { mariadb } from '../../plugins/dialects/mariadb/dialect.ts';
import { quoteIdentifier as quoteMysql } from '../../plugins/dialects/mysql/compile/literal.ts';
import { mysql } from '../../plugins/dialects/mysql/dialect.ts';
import { quoteIdentifier } from '../../plugins/dialects/postgresql/compile/grammar.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { find } from '../servers/find.ts';
import { connectAdapter } from './adapter.ts';
import type { TestDatabase } from '../suites/test-database.ts';
import { freshDatabase as freshMysql } from './mysql.ts';
import { freshFolder } from './pglite.ts';
import { freshDatabase, unavailable } from './postgresql.ts';

/** What tests say to an engine that has no word of its own in SQL. */
export interface EngineWords {
  quote(name: string): string;
  /** A column of a type that svc reads as another one, and what tells of it. */
  readonly odd: { readonly column: string; readonly told: RegExp };
  /** A column that svc reads and cannot make, and why. */
  readonly oneWay: { readonly column: string; readonly why: RegExp };
  /** How the server tells an error of syntax. */
  readonly syntaxError: RegExp;
  /** The schema of `information_schema` that tables of the test are in. */
  readonly here: string;
  /** Two tables as somebody would make them without svc, each thing in them one that svc makes too. */
  readonly adoptable: string;
}

const POSTGRESQL: EngineWords = {
  quote: quoteIdentifier,
  odd: { column: 'address inet', told: /legacy\.address .*inet/ },
  oneWay: { column: 'total numeric', why: /precision/ },
  syntaxError: /42601.*syntax error/,
  here: 'current_schema()',
  adoptable: `create table teams (id serial primary key, title varchar(40) not null unique);
    create table people (id uuid primary key default gen_random_uuid(), team int references teams (id) on delete cascade,
      mood text check (mood in ('good', 'bad')), born date);
    create index people_born on people (born desc, mood)`,
};

const MYSQL: EngineWords = {
  quote: quoteMysql,
  odd: { column: 'address bit(7)', told: /legacy\.address .*bit/ },
  oneWay: { column: 'total varchar(20000) CHARACTER SET latin1', why: /16383/ },
  syntaxError: /1064/,
  here: 'database()',
  adoptable: `create table teams (id int auto_increment primary key, title varchar(40) not null unique);
    create table people (id char(36) character set ascii primary key default (uuid()), team int,
      mood enum('good', 'bad'), born date, foreign key (team) references teams (id) on delete cascade);
    create index people_born on people (born desc, mood)`,
};

/** An engine that tests run on, whatever dialect it speaks. */
export class TestEngine {
  readonly name: string;
  readonly dialect: Dialect;
  readonly words: EngineWords;
  /** Why it cannot be used here. */
  readonly missing: string | undefined;
  readonly #fresh: () => Promise<TestDatabase>;

  constructor(name: string, dialect: Dialect, fresh: () => Promise<TestDatabase>, missing?: string) {
    this.name = name;
    this.dialect = dialect;
    this.words = dialect === postgresql ? POSTGRESQL : MYSQL;
    this.missing = missing;
    this.#fresh = fresh;
  }

  /** Runs a body on the URL of a database of its own; what it connects is closed behind it. */
  async withUrl(body: (url: string, connect: (kernel?: Kernel) => Promise<Target>) => Promise<void>): Promise<void> {
    const { url, drop } = await this.#fresh();
    const open: Target[] = [];
    try {
      await body(url, async (kernel = new Kernel()) => {
        const adapter = await connectAdapter(this.dialect, url, { kernel });
        open.push(adapter);
        return adapter;
      });
    } finally {
      for (const { connection } of open) await connection.close();
      await drop();
    }
  }

  /** Runs a body on a connected database of its own; `again` connects to it once more. */
  withDatabase(
    body: (adapter: Target, again: () => Promise<Target>, kernel: Kernel) => Promise<void>,
  ): Promise<void> {
    return this.withUrl(async (_url, connect) => {
      const kernel = new Kernel();
      await body(await connect(kernel), () => connect(), kernel);
    });
  }
}

export const engines: readonly TestEngine[] = [
  new TestEngine('postgresql', postgresql, freshDatabase, await unavailable()),
  new TestEngine('pglite', postgresql, freshFolder),
];

/** Engines whose DDL commits by itself. */
export const committingEngines: readonly TestEngine[] = await Promise.all(
  [mysql, mariadb].map(async (dialect) => {
    const found = await find(dialect.name as 'mysql' | 'mariadb');
    return 'missing' in found
      ? new TestEngine(dialect.name, dialect, () => Promise.reject(new Error(found.missing)), found.missing)
      : new TestEngine(dialect.name, dialect, () => freshMysql(found.url));
  }),
);

/** Every engine that speaks SQL. */
export const sqlEngines: readonly TestEngine[] = [...engines, ...committingEngines];
