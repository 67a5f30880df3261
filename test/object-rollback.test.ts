import * as assert from 'node:assert/strict';
import { generate } from '../config/project/generate.ts';
import type { MigrationFile } from '../config/project/migration-files.ts';
import { schemaEntry } from '../config/project/schema-file.ts';
import { migrate, rollback } from '../core/migration/migrate.ts';
import { objectModel } from '../core/schema/database-object.ts';
import type { Declaration } from '../core/schema/declaration/declaration.ts';
import { sqlEngines } from './kit/engines.ts';
import { definedInCode } from './kit/migrations.ts';
import { test } from './kit/test.ts';

// What reads a field is edited together with a rename of it: the migration works in both directions.

const id = { type: 'integer', primaryKey: true } as const;

for (const engine of sqlEngines) {
  if (engine.missing !== undefined) {
    test.skip(`${engine.name}: a rename with edited objects is rolled back`, engine.missing);
    continue;
  }
  test(`${engine.name}: a rename with edited objects is rolled back`, () =>
    engine.withDatabase(async (target) => {
      const { connection, dialect } = target;
      const isPostgresql = dialect.name === 'postgresql';
      const language = isPostgresql ? 'LANGUAGE sql AS $$ SELECT' : 'READS SQL DATA RETURN (SELECT';
      const objects = (table: string, field: string) =>
        objectModel([
          { kind: 'view', name: 'v', definition: `CREATE VIEW v AS SELECT id, ${field} FROM ${table}` },
          { kind: 'view', name: 'v2', definition: 'CREATE VIEW v2 AS SELECT id FROM v' },
          {
            kind: 'function',
            name: 'most',
            definition: `CREATE FUNCTION most() RETURNS int ${language} max(${field}) FROM ${table}${isPostgresql ? ' $$' : ')'}`,
          },
          ...(isPostgresql
            ? [{ kind: 'policy', name: `${table}.p`, definition: `CREATE POLICY p ON ${table} USING (${field} > 0)` }]
            : [
                {
                  kind: 'trigger',
                  name: `${table}.t`,
                  definition: `CREATE TRIGGER t BEFORE INSERT ON ${table} FOR EACH ROW SET NEW.${field} = 1`,
                },
              ]),
        ]);
      const files: MigrationFile[] = [];
      const change = async (
        tables: Declaration['tables'],
        reading: ReturnType<typeof objects>,
        rename: readonly string[],
        at: string,
      ) => {
        const entry = schemaEntry('main', { tables });
        const made = await generate({ dialect, files, entry, now: new Date(at), rename, drop: [], objects: reading });
        files.push(...made.map(({ file, migration }) => ({ file, ...definedInCode(migration) })));
        await migrate(target, files);
      };
      const assertWorks = async (table: string, field: string) => {
        await connection.query(`SELECT most() FROM ${table}`);
        await connection.query(`SELECT v.${field} FROM v JOIN v2 ON v2.id = v.id`);
      };
      await change({ big: { id, n: 'integer' } }, objects('big', 'n'), [], '2026-01-01T00:00:00Z');
      await assertWorks('big', 'n');
      const renamed = { big: { id, m: 'integer' } } as const;
      await change(renamed, objects('big', 'm'), ['big.n:m'], '2026-01-02T00:00:00Z');
      await assertWorks('big', 'm');
      await change({ huge: renamed.big }, objects('huge', 'm'), ['big:huge'], '2026-01-03T00:00:00Z');
      await assertWorks('huge', 'm');
      await rollback(target, { count: 1 });
      await assertWorks('big', 'm');
      await rollback(target, { count: 1 });
      await assertWorks('big', 'n');
      await migrate(target, files);
      await assertWorks('huge', 'm');
      await rollback(target, { count: 3 });
      assert.equal((await connection.introspect()).size, 0);
    }));
}
