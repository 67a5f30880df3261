import * as assert from 'node:assert/strict';
import { readCatalog } from '../plugins/dialects/mysql/catalog/read-catalog.ts';
import { mysqlTraits } from '../plugins/dialects/mysql/dialect.ts';
import type { Result } from '../plugins/dialects/sql/session.ts';
import { committingEngines } from './kit/engines.ts';
import { test } from './kit/test.ts';

// The views of MySQL's catalog are read from tables, and the server counts how often. MariaDB's are not.

const engines = committingEngines.filter(({ name }) => name === 'mysql');
const title = 'the catalog queries read a number of rows that grows with the tables, not with their square';

for (const engine of engines) {
  if (engine.missing !== undefined) test.skip(title, engine.missing);
  else
    test(
      title,
      () =>
        engine.withUrl(async (url) => {
          const connection = await engine.dialect.connect(url, {});
          try {
            const readRows = async (): Promise<number> => {
              const rows = await connection.query("SHOW SESSION STATUS LIKE 'Handler_read%'");
              return rows.reduce((sum, row) => sum + Number(row.Value), 0);
            };
            const make = async (from: number, to: number): Promise<void> => {
              for (let at = from; at < to; at++) {
                const parent = at === 0 ? '' : `, constraint f${at} foreign key (parent) references t${at - 1} (id)`;
                await connection.query(
                  `create table t${at} (id int primary key, parent int, constraint c${at} check (id > ${at})${parent})`,
                );
              }
            };
            const readBy = async (tables: number): Promise<number> => {
              const before = await readRows();
              const found = await readCatalog(async (text) => {
                const results: Result[] = [];
                for (const one of text.split(';\n')) results.push({ rows: await connection.query(one), count: 0 });
                return results;
              }, mysqlTraits);
              assert.equal(found.length, tables);
              assert.equal(found[0]?.checks.length, 1);
              return (await readRows()) - before;
            };
            await make(0, 40);
            const few = await readBy(40);
            await make(40, 120);
            const many = await readBy(120);
            assert.ok(many < few * 4.5, `${few} rows for 40 tables, ${many} for three times as many`);
          } finally {
            await connection.close();
          }
        }),
      { timeoutMs: 120_000 },
    );
}
