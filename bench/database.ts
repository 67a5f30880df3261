import type { Engine } from './engine.ts';

/** Drops each created database, by URL. */
const created = new Map<string, () => Promise<unknown>>();

export function databaseUrl({ server }: Engine, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** Creates an empty database of that name, replacing an existing one. */
export async function freshDatabase(engine: Engine, name: string): Promise<string> {
  const url = databaseUrl(engine, name);
  const drop = () => engine.query(engine.server, engine.drop(name));
  await drop();
  created.set(url, drop);
  await engine.query(engine.server, `CREATE DATABASE ${name}`);
  return url;
}

export async function dropDatabases(): Promise<void> {
  for (const [url, drop] of created) {
    await drop();
    created.delete(url);
  }
}

/** The first value of the first row. */
export async function value(engine: Engine, url: string, query: string): Promise<string> {
  const [row = {}] = await engine.query(url, query);
  return String(Object.values(row)[0]);
}

export async function serverFacts(engine: Engine): Promise<string> {
  const query = (text: string) => value(engine, engine.server, text);
  const facts = [`${engine.title} ${(await query('SELECT version()')).replace(/^PostgreSQL ([\d.]+).*/, '$1')}`];
  for (const name of engine.settings)
    facts.push(`${name} ${await query(engine.name === 'postgresql' ? `SHOW ${name}` : `SELECT @@${name}`)}`);
  return facts.join(', ');
}
