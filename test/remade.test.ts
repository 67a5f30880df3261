import * as assert from 'node:assert/strict';
import { engines, type TestEngine } from './kit/engines.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { POSTGRESQL_CASES, POSTGRESQL_FACTS, POSTGRESQL_SAID, POSTGRESQL_SETUP } from './kit/remade-postgresql.ts';
import { test } from './kit/test.ts';

/**
 * A database made again from the files that `pull` wrote is the same one, by every fact of its catalog. What is not the same is
 * in a warning: nothing is lost in silence.
 */
for (const engine of engines) {
  const title = `${engine.name}: a table that was pulled and made again is the same, or a warning says what is not`;
  if (engine.missing === undefined) test(title, () => remake(engine), LONG);
  else test.skip(title, engine.missing);
}

const SCHEMA = 'svc/database/schema.json';
const MIGRATIONS = 'svc/database/migrations/main';

async function remake(engine: TestEngine): Promise<void> {
  await engine.withUrl((from, connectFrom) =>
    engine.withUrl(async (to, connectTo) => {
      const source = (await connectFrom()).connection;
      await source.query(POSTGRESQL_SETUP);
      for (const [name, ddl] of Object.entries(POSTGRESQL_CASES)) await source.query(ddl.replaceAll('@', name));
      const before = factsByTable(await source.query(POSTGRESQL_FACTS));
      await source.close();

      const pulled = project({ main: from });
      const { warnings } = json(assertExit(await pulled.svc('db', 'schema', 'pull', '--json')));
      assertExit(await pulled.svc('db', 'migrate', 'baseline'));
      assert.match(assertExit(await pulled.svc('db', 'schema', 'check')).stdout, /^OK/);

      const made = project({ main: to });
      made.write(SCHEMA, pulled.read(SCHEMA));
      for (const file of pulled.files()) made.write(`${MIGRATIONS}/${file}`, pulled.read(`${MIGRATIONS}/${file}`));
      assertExit(await made.svc('db', 'migrate'));
      assert.match(assertExit(await made.svc('db', 'schema', 'generate')).stdout, /^Nothing to generate/);
      assert.match(assertExit(await made.svc('db', 'schema', 'check')).stdout, /^OK/);
      const target = (await connectTo()).connection;
      const after = factsByTable(await target.query(POSTGRESQL_FACTS));

      const said: string[] = [];
      const silent: object[] = [];
      for (const [name, facts] of before) {
        const made = after.get(name) ?? new Set();
        const lost = [...facts].filter((fact) => !made.has(fact));
        const gained = [...made].filter((fact) => !facts.has(fact));
        if (lost.length + gained.length === 0) continue;
        if (warnings.some((line: string) => new RegExp(`\\b${name}\\b`).test(line))) said.push(name);
        else silent.push({ name, lost, gained });
      }
      assert.deepEqual(silent, []);
      assert.deepEqual(said.sort(), [...POSTGRESQL_SAID].sort());
      assertExit(await made.svc('db', 'migrate', 'rollback', '--allow-destructive'));
      assert.deepEqual(await target.query(POSTGRESQL_FACTS), []);
    }),
  );
}

function factsByTable(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { t, fact } of rows) {
    const facts = found.get(String(t)) ?? new Set();
    found.set(String(t), facts.add(respelled(String(fact))));
  }
  return found;
}

/** PostgreSQL shows a list of varchar in another way once what it shows was executed. */
const respelled = (fact: string): string =>
  fact.includes('= ANY (') ? fact.replace(/::(character varying|text)(\[\])?|[()]/g, '') : fact;
