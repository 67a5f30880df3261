import { DuckDBInstance } from '@duckdb/node-api';
import { type EmbeddedDatabase, exactNumber } from '@svc/sdk/dialect';

export async function openDatabase(file: string): Promise<EmbeddedDatabase> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  const exec = async (sql: string) => {
    const result = await connection.runAndReadAll(sql);
    const rows = result.getRowObjectsJS().map((row) => {
      const values = Object.entries(row).map(([name, value]) => [name, exactNumber(value)] as const);
      return Object.fromEntries(values);
    });
    return { rows, count: result.rowsChanged };
  };
  await exec("SET TimeZone = 'UTC'");
  const [version] = (await exec('SELECT version() AS version')).rows;
  return {
    server: `DuckDB ${version?.version}`,
    exec,
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}
