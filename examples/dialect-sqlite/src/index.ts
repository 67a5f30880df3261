import { resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { definePlugin, SvcError } from '@svc/sdk';
import { type ExecSql, quoteLiteral, SerialQueue, textCatalogDialect } from '@svc/sdk/dialect';
import { openDriver } from './driver.ts';
import { isBusy, isDuplicate, isMissing, toSvcError } from './errors.ts';
import { RULES, SYNTAX } from './syntax.ts';

/** How long to wait for another connection's write. */
const BUSY_TIMEOUT_MS = 10_000;

const CATALOG_QUERY = `SELECT sql FROM sqlite_schema WHERE type IN ('table', 'index') AND sql IS NOT NULL
  AND substr(tbl_name, 1, 5) <> '_svc_' AND substr(tbl_name, 1, 7) <> 'sqlite_'`;

function fileOf(url: string): string {
  if (url.startsWith('sqlite://') && url.length > 9) return resolve(decodeURIComponent(url.slice(9)));
  throw new SvcError('url_invalid', 'The URL of the SQLite database is invalid.', {
    next: ['Use the form sqlite://./folder/file.db'],
  });
}

/** Retries while another connection is writing. */
async function retryWhileBusy<T>(work: () => T): Promise<T> {
  for (const deadline = performance.now() + BUSY_TIMEOUT_MS; ; await wait(2 + Math.random() * 8)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error) || performance.now() > deadline) throw error;
    }
  }
}

export const sqlite = textCatalogDialect({
  rules: RULES,
  syntax: SYNTAX,
  identify: (url) => `sqlite:${fileOf(url)}`,
  async open(url) {
    const driver = await openDriver(fileOf(url)).catch((error) => Promise.reject(toSvcError(error)));
    const queue = new SerialQueue();
    const exec: ExecSql = (sql) =>
      retryWhileBusy(() => [{ rows: driver.all(sql), count: Number(driver.all('SELECT changes() AS n')[0]?.n) }]);
    const column = async (sql: string) => {
      const [result] = await queue.run(() => exec(sql));
      return result?.rows.map((row) => String(Object.values(row)[0])) ?? [];
    };
    return {
      server: `SQLite ${driver.all('SELECT sqlite_version() AS version')[0]?.version}`,
      exec: (sql) => queue.run(() => exec(sql)),
      script: (sql) => driver.exec(sql),
      transaction: (work, rebuilds) =>
        queue.run(async () => {
          // With foreign keys on, dropping a table would also delete the rows that reference it.
          driver.exec(`PRAGMA foreign_keys = ${rebuilds ? 'OFF' : 'ON'}`);
          await retryWhileBusy(() => driver.exec('BEGIN IMMEDIATE'));
          try {
            const result = await work(exec);
            await retryWhileBusy(() => driver.exec('COMMIT'));
            return result;
          } catch (error) {
            driver.exec('ROLLBACK');
            throw error;
          } finally {
            driver.exec('PRAGMA foreign_keys = ON');
          }
        }),
      columns: (table) => column(`SELECT name FROM pragma_table_info(${quoteLiteral(table)})`),
      catalogTexts: () => column(CATALOG_QUERY),
      toSvcError: toSvcError,
      isMissing,
      isDuplicate,
      close: async () => driver.close(),
    };
  },
});

export default definePlugin({
  name: 'sqlite',
  api: 1,
  apply: (kernel) => kernel.dialects.register(RULES.name, sqlite),
});
