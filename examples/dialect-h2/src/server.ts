import type { SqlServer } from '@svc/sdk/dialect';
import pg from 'pg';

const BIGINT = 20;
/** The driver would read these in the time zone of the process: they are text. */
const WALL_CLOCK: ReadonlySet<number> = new Set([
  pg.types.builtins.DATE,
  pg.types.builtins.TIME,
  pg.types.builtins.TIMESTAMP,
]);

const getTypeParser: typeof pg.types.getTypeParser = (type: number) => {
  if (type === BIGINT) return BigInt;
  return WALL_CLOCK.has(type) ? String : pg.types.getTypeParser(type);
};

export async function open(
  url: string,
  { connectTimeoutMs }: { readonly connectTimeoutMs: number },
): Promise<SqlServer> {
  const client = new pg.Client({
    connectionString: url.replace(/^h2:/, 'postgresql:'),
    connectionTimeoutMillis: connectTimeoutMs,
    types: { getTypeParser },
  });
  // Without a listener the error would end the process; the next statement throws it.
  client.on('error', () => undefined);
  await client.connect();
  const queryAll = async (texts: readonly string[]) =>
    [await client.query(texts.join(';\n'))].flat().map(({ rows, rowCount }) => ({ rows, count: rowCount ?? 0 }));
  const exec = async (text: string) => (await queryAll([text]))[0] ?? { rows: [], count: 0 };
  const [version] = await queryAll(['SELECT H2VERSION() AS version', "SET TIME ZONE 'UTC'", 'SET LOCK_TIMEOUT 20000']);
  return { server: `H2 ${version?.rows[0]?.version}`, exec, queryAll, close: () => client.end() };
}
