import { DuckDBInstance } from '@duckdb/node-api';
import type { EmbeddedDatabase } from '@svc/sdk/dialect';

export async function openDatabase(file: string): Promise<EmbeddedDatabase> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  const exec = async (sql: string) => {
    const result = await connection.runAndReadAll(sql);
    return { rows: result.getRowObjectsJS(), count: result.rowsChanged };
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
