import type { Connection } from '../../core/dialect.ts';
import type { Target } from '../../core/migration/target.ts';
import type { TestEngine } from './engines.ts';
import type { RemadeCases } from './remade-cases.ts';
import { MYSQL_CASES, MYSQL_SETUP } from './remade-mysql.ts';
import { MARIADB_ONLY, MARIADB_ONLY_SAID, MYSQL_ONLY, MYSQL_ONLY_SAID } from './remade-mysql-more.ts';
import { MARIADB_WHOLE, MYSQL_WHOLE } from './remade-mysql-whole.ts';
import { POSTGRESQL_CASES, POSTGRESQL_SAID, POSTGRESQL_SETUP } from './remade-postgresql.ts';
import { postgresqlFacts } from './remade-postgresql-facts.ts';
import { type Facts, type Remade, remakeFrom } from './remake-files.ts';

/** A grown database of one feature for each table. */
export interface Grown {
  readonly setup: string;
  readonly cases: RemadeCases;
  /** The configuration lists all schemas of the database and has the option `grants`; by default only the first one is read. */
  readonly allSchemas?: true;
}

/** The features that are tried on an engine, and the tables of which a warning says that they are not the same. */
export function grownOn({ name, dialect }: TestEngine): Grown & { readonly said: readonly string[] } {
  if (dialect.name === 'postgresql')
    return { setup: POSTGRESQL_SETUP, cases: POSTGRESQL_CASES, allSchemas: true, said: POSTGRESQL_SAID };
  const [more, said] =
    name === 'mysql'
      ? [{ ...MYSQL_ONLY, ...MYSQL_WHOLE }, MYSQL_ONLY_SAID]
      : [{ ...MARIADB_ONLY, ...MARIADB_WHOLE }, MARIADB_ONLY_SAID];
  return { setup: MYSQL_SETUP, cases: { ...MYSQL_CASES, ...more }, said };
}

/** Pulls a database, makes it again from the files on an empty one, compares all facts, and rolls it back to nothing. */
export async function remake(engine: TestEngine, { setup, cases, allSchemas }: Grown): Promise<Remade> {
  let result: Remade | undefined;
  await engine.withUrl((from, connectFrom) =>
    engine.withUrl(async (to, connectTo) => {
      const source = (await connectFrom()).connection;
      await source.query(setup);
      for (const [name, ddl] of Object.entries(cases)) {
        await source.query(ddl.replaceAll('@', name)).catch((cause: unknown) => {
          throw new Error(`The case ${name} cannot be created`, { cause });
        });
      }
      if (allSchemas) await source.query('SET search_path TO public');
      const schemas = allSchemas ? await schemasOf(source) : undefined;
      const facts = engine.dialect.name === 'postgresql' ? factsOfPostgresql(schemas ?? ['public']) : factsOfMysql;
      const before = await facts(source);
      await source.close();

      const options = schemas === undefined ? {} : { schemas, options: { grants: true } };
      result = await remakeFrom({ from, to, before, options, readMade: () => read(connectTo, facts) });
    }),
  );
  if (!result) throw new Error(`${engine.name} gave no database`);
  return result;
}

/** An embedded database has one connection at a time. */
async function read(connect: () => Promise<Target>, facts: (connection: Connection) => Promise<Facts>): Promise<Facts> {
  const { connection } = await connect();
  try {
    return await facts(connection);
  } finally {
    await connection.close();
  }
}

async function schemasOf(connection: Connection): Promise<readonly string[]> {
  const rows = await connection.query(
    "SELECT nspname AS name FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema' ORDER BY nspname <> 'public', nspname",
  );
  return rows.map(({ name }) => String(name));
}

const factsOfPostgresql =
  (schemas: readonly string[]) =>
  async (connection: Connection): Promise<Facts> => {
    const found: Facts = new Map();
    for (const { t, fact } of await connection.query(postgresqlFacts(schemas))) {
      const facts = found.get(String(t)) ?? new Set();
      found.set(String(t), facts.add(respelled(String(fact))));
    }
    return found;
  };

/** PostgreSQL shows a list of varchar and a cast in another way once what it shows was executed. */
const respelled = (written: string): string => {
  const fact = written.replace(/default '(\d+)'::smallint/, 'default $1').replace(/'::"bit"/, "'::bit varying");
  return fact.includes('= ANY (') ? fact.replace(/::(character varying|text)(\[\])?|[()]/g, '') : fact;
};

async function factsOfMysql(connection: Connection): Promise<Facts> {
  const found: Facts = new Map();
  const list = await connection.query(
    `SELECT IF(table_type IN ('VIEW', 'SEQUENCE'), table_type, 'TABLE') AS kind, table_name AS t FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT LIKE '\\_svc\\_%'
    UNION ALL SELECT routine_type, routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()
    UNION ALL SELECT 'EVENT', event_name FROM information_schema.events WHERE event_schema = DATABASE()`,
  );
  const [{ db } = {}] = await connection.query('SELECT DATABASE() AS db');
  for (const { kind, t } of list) {
    const [row = {}] = await connection.query(`SHOW CREATE ${kind} \`${t}\``);
    const shown = Object.entries(row).find(([column]) => column.startsWith('Create '))?.[1];
    const text = String(shown)
      // What calls a sequence names the database that it is in.
      .replaceAll(`\`${db}\`.`, '')
      .replace(/ AUTO_INCREMENT=\d+/, '')
      .replace(/ STARTS '[^']*'/, '')
      // MariaDB keeps the letters of its own options as they were written.
      .replace(/`page_\w+`=/gi, (option) => option.toLowerCase())
      .replace(/;$/, '');
    const triggers = await connection.query(
      `SELECT CONCAT_WS(' ', action_timing, event_manipulation, action_order, action_statement) AS s FROM information_schema.triggers WHERE event_object_schema = DATABASE() AND event_object_table = '${t}'`,
    );
    found.set(
      String(t),
      new Set([
        ...text.split('\n').map((line) => line.replace(/,$/, '')),
        ...triggers.map(({ s }) => String(s).replace(/;$/, '')),
      ]),
    );
  }
  return found;
}
