import * as assert from 'node:assert/strict';
import { cpSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Connection } from '../core/dialect.ts';
import type { Target } from '../core/migration/target.ts';
import { sqlEngines, type TestEngine } from './kit/engines.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import type { RemadeCases } from './kit/remade-cases.ts';
import { MARIADB_SAID, MYSQL_CASES, MYSQL_SAID, MYSQL_SETUP } from './kit/remade-mysql.ts';
import { POSTGRESQL_CASES, POSTGRESQL_FACTS, POSTGRESQL_SAID, POSTGRESQL_SETUP } from './kit/remade-postgresql.ts';
import { test } from './kit/test.ts';

/**
 * A database made again from the files that `pull` wrote is the same one, by every fact of its catalog. What is not the same is
 * in a warning: nothing is lost in silence.
 */
for (const engine of sqlEngines) {
  const title = `${engine.name}: a table that was pulled and made again is the same, or a warning says what is not`;
  if (engine.missing === undefined) test(title, () => remake(engine), LONG);
  else test.skip(title, engine.missing);
}

const SCHEMA = 'svc/database/schema.json';
const OBJECTS = 'svc/database/objects';
const MIGRATIONS = 'svc/database/migrations/main';

type Facts = Map<string, Set<string>>;

/** A grown database of one feature for each table. */
interface Remade {
  readonly setup: string;
  readonly cases: RemadeCases;
  /** The tables of which a warning says that they are not the same. */
  readonly said: readonly string[];
  readonly facts: (connection: Connection) => Promise<Facts>;
}

function remadeOn({ name, dialect }: TestEngine): Remade {
  if (dialect.name === 'postgresql') {
    const facts = async (connection: Connection) => factsByTable(await connection.query(POSTGRESQL_FACTS));
    return { setup: POSTGRESQL_SETUP, cases: POSTGRESQL_CASES, said: POSTGRESQL_SAID, facts };
  }
  const said = name === 'mysql' ? MYSQL_SAID : MARIADB_SAID;
  return { setup: MYSQL_SETUP, cases: MYSQL_CASES, said, facts: factsOfMysql };
}

async function factsOfMysql(connection: Connection): Promise<Facts> {
  const found: Facts = new Map();
  const tables = await connection.query(
    "SELECT table_name AS t FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name NOT LIKE '\\_svc\\_%'",
  );
  for (const { t } of tables) {
    const [row] = await connection.query(`SHOW CREATE TABLE \`${t}\``);
    const text = String(row?.['Create Table']).replace(/ AUTO_INCREMENT=\d+/, '');
    const triggers = await connection.query(
      `SELECT action_statement AS s FROM information_schema.triggers WHERE event_object_schema = DATABASE() AND event_object_table = '${t}'`,
    );
    found.set(
      String(t),
      new Set([...text.split('\n').map((line) => line.replace(/,$/, '')), ...triggers.map(({ s }) => String(s))]),
    );
  }
  return found;
}

async function remake(engine: TestEngine): Promise<void> {
  const { setup, cases, said: expected, facts } = remadeOn(engine);
  await engine.withUrl((from, connectFrom) =>
    engine.withUrl(async (to, connectTo) => {
      const source = (await connectFrom()).connection;
      await source.query(setup);
      for (const [name, ddl] of Object.entries(cases)) await source.query(ddl.replaceAll('@', name));
      const before = await facts(source);
      await source.close();

      const pulled = project({ main: from });
      const { warnings } = json(assertExit(await pulled.svc('db', 'schema', 'pull', '--json')));
      assertExit(await pulled.svc('db', 'migrate', 'baseline'));
      assert.match(assertExit(await pulled.svc('db', 'schema', 'check')).stdout, /^OK/);

      const made = project({ main: to });
      made.write(SCHEMA, pulled.read(SCHEMA));
      if (existsSync(join(pulled.root, OBJECTS)))
        cpSync(join(pulled.root, OBJECTS), join(made.root, OBJECTS), { recursive: true });
      for (const file of pulled.files()) made.write(`${MIGRATIONS}/${file}`, pulled.read(`${MIGRATIONS}/${file}`));
      assertExit(await made.svc('db', 'migrate'));
      assert.match(assertExit(await made.svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
      assert.match(assertExit(await made.svc('db', 'schema', 'check')).stdout, /^OK/);
      const after = await read(connectTo, facts);

      const said: string[] = [];
      const silent: object[] = [];
      for (const [name, known] of before) {
        const made = after.get(name) ?? new Set();
        const lost = [...known].filter((fact) => !made.has(fact));
        const gained = [...made].filter((fact) => !known.has(fact));
        if (lost.length + gained.length === 0) continue;
        if (warnings.some((line: string) => new RegExp(`\\b${name}\\b`).test(line))) said.push(name);
        else silent.push({ name, lost, gained });
      }
      assert.deepEqual(silent, []);
      assert.deepEqual(said.sort(), [...expected].sort());
      assertExit(await made.svc('db', 'migrate', 'rollback', '--allow-destructive'));
      assert.deepEqual(await read(connectTo, facts), new Map());
    }),
  );
}

/** An embedded database has one connection at a time. */
async function read(connect: () => Promise<Target>, facts: Remade['facts']): Promise<Facts> {
  const { connection } = await connect();
  try {
    return await facts(connection);
  } finally {
    await connection.close();
  }
}

function factsByTable(rows: readonly Readonly<Record<string, unknown>>[]): Facts {
  const found: Facts = new Map();
  for (const { t, fact } of rows) {
    const facts = found.get(String(t)) ?? new Set();
    found.set(String(t), facts.add(respelled(String(fact))));
  }
  return found;
}

/** PostgreSQL shows a list of varchar in another way once what it shows was executed, and '3'::smallint is 3. */
const respelled = (written: string): string => {
  const fact = written.replace(/default '(\d+)'::smallint/, 'default $1');
  return fact.includes('= ANY (') ? fact.replace(/::(character varying|text)(\[\])?|[()]/g, '') : fact;
};
