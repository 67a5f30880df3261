import { DuckDBInstance, DuckDBTypeId, JSDuckDBValueConverter } from '@duckdb/node-api';
import type { EmbeddedDatabase } from '@svc/sdk/dialect';

/** The driver would return a decimal as a rounded number, and a time as microseconds: they are text. */
const toJs: typeof JSDuckDBValueConverter = (value, type, converter) =>
  value !== null && (type.typeId === DuckDBTypeId.DECIMAL || type.typeId === DuckDBTypeId.TIME)
    ? String(value)
    : JSDuckDBValueConverter(value, type, converter);

export async function openDatabase(file: string): Promise<EmbeddedDatabase> {
  const instance = await DuckDBInstance.create(file);
  const connection = await instance.connect();
  const exec = async (sql: string) => {
    const result = await connection.runAndReadAll(sql);
    return { rows: result.convertRowObjects(toJs), count: result.rowsChanged };
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
