import type { ConnectOptions, Dialect } from '../../core/dialect.ts';
import { Kernel } from '../../core/kernel.ts';
import type { Target } from '../../core/migration/target.ts';
import { mariadb } from '../../plugins/dialects/mariadb/dialect.ts';
import { quoteIdentifier as quoteMysql } from '../../plugins/dialects/mysql/compile/literal.ts';
import { mysql } from '../../plugins/dialects/mysql/dialect.ts';
import { quoteIdentifier } from '../../plugins/dialects/postgresql/compile/names.ts';
import { postgresql } from '../../plugins/dialects/postgresql/dialect.ts';
import { find } from '../servers/find.ts';
import type { TestDatabase } from '../suites/test-database.ts';
import { freshDatabase as freshMysql } from './mysql.ts';
import { freshFolder } from './pglite.ts';
import { freshDatabase, unavailable } from './postgresql.ts';
import { connectTarget } from './target.ts';

/** The SQL of an engine that tests need. */
export interface EngineSql {
  quote(name: string): string;
  /** A column whose type svc reads as another one, and the warning about it. */
  readonly approximated: { readonly before?: string; readonly column: string; readonly warning: RegExp };
  /** A column that svc can read but not create, and the reason. Without it, svc creates all that it reads. */
  readonly readOnly?: { readonly column: string; readonly why: RegExp };
  /** Matches the syntax error of the server. */
  readonly syntaxError: RegExp;
  /** An expression for the schema that contains the tables of a test. */
  readonly currentSchema: string;
  /** Two tables created without svc that svc could have created. */
  readonly existingTables: string;
}

const POSTGRESQL: EngineSql = {
  quote: quoteIdentifier,
  approximated: {
    before: "CREATE SCHEMA lib; CREATE TYPE lib.mood AS ENUM ('sad')",
    column: 'address lib.mood',
    warning: /legacy\.address .*lib\.mood/,
  },
  readOnly: { column: 'code varchar(20) default gen_random_uuid()', why: /too short/ },
  syntaxError: /42601.*syntax error/,
  currentSchema: 'current_schema()',
  existingTables: `create table teams (id serial primary key, title varchar(40) not null unique);
    create table people (id uuid primary key default gen_random_uuid(), team int references teams (id) on delete cascade,
      mood text check (mood in ('good', 'bad')), born date);
    create index people_born on people (born desc, mood)`,
};

const MYSQL: EngineSql = {
  quote: quoteMysql,
  approximated: { column: 'address char(36) default (uuid())', warning: /legacy\.address .*uuid/ },
  syntaxError: /1064/,
  currentSchema: 'database()',
  existingTables: `create table teams (id int auto_increment primary key, title varchar(40) not null unique);
    create table people (id char(36) character set ascii primary key default (uuid()), team int,
      mood enum('good', 'bad'), born date, foreign key (team) references teams (id) on delete cascade);
    create index people_born on people (born desc, mood)`,
};

/** An engine that tests run on. */
export class TestEngine {
  readonly name: string;
  readonly dialect: Dialect;
  readonly sql: EngineSql;
  /** Why it is not available. */
  readonly missing: string | undefined;
  readonly #fresh: () => Promise<TestDatabase>;

  constructor(name: string, dialect: Dialect, createDatabase: () => Promise<TestDatabase>, missing?: string) {
    this.name = name;
    this.dialect = dialect;
    this.sql = dialect === postgresql ? POSTGRESQL : MYSQL;
    this.missing = missing;
    this.#fresh = createDatabase;
  }

  /** Runs `body` with the URL of a new database. Connections are closed afterwards. */
  async withUrl(
    body: (url: string, connect: (kernel?: Kernel, options?: ConnectOptions) => Promise<Target>) => Promise<void>,
  ): Promise<void> {
    const { url, drop } = await this.#fresh();
    const open: Target[] = [];
    try {
      await body(url, async (kernel = new Kernel(), options = {}) => {
        const target = await connectTarget(this.dialect, url, { kernel, ...options });
        open.push(target);
        return target;
      });
    } finally {
      for (const { connection } of open) await connection.close();
      await drop();
    }
  }

  /** Runs `body` with a connection to a new database; `connectAgain` opens another one. */
  withDatabase(
    body: (target: Target, connectAgain: () => Promise<Target>, kernel: Kernel) => Promise<void>,
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

/** Engines whose DDL commits implicitly. */
export const committingEngines: readonly TestEngine[] = await Promise.all(
  [mysql, mariadb].map(async (dialect) => {
    const found = await find(dialect.name as 'mysql' | 'mariadb');
    return 'missing' in found
      ? new TestEngine(dialect.name, dialect, () => Promise.reject(new Error(found.missing)), found.missing)
      : new TestEngine(dialect.name, dialect, () => freshMysql(found.url));
  }),
);

/** Every SQL engine. */
export const sqlEngines: readonly TestEngine[] = [...engines, ...committingEngines];
