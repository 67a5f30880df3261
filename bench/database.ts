import type { Engine } from './engine.ts';

/** By URL: engines may have databases of one name. */
const made = new Map<string, () => Promise<unknown>>();

export function databaseUrl({ server }: Engine, name: string): string {
  const url = new URL(server);
  url.pathname = `/${name}`;
  return url.href;
}

/** An empty database of that name, in place of the one that may be there. */
export async function freshDatabase(engine: Engine, name: string): Promise<string> {
  const url = databaseUrl(engine, name);
  const drop = () => engine.ask(engine.server, engine.drop(name));
  await drop();
  made.set(url, drop);
  await engine.ask(engine.server, `CREATE DATABASE ${name}`);
  return url;
}

export async function dropDatabases(): Promise<void> {
  for (const [url, drop] of made) {
    await drop();
    made.delete(url);
  }
}

/** The first value of the first row. */
export async function value(engine: Engine, url: string, query: string): Promise<string> {
  const [row = {}] = await engine.ask(url, query);
  return String(Object.values(row)[0]);
}

export async function serverFacts(engine: Engine): Promise<string> {
  const ask = (text: string) => value(engine, engine.server, text);
  const facts = [`${engine.title} ${(await ask('SELECT version()')).replace(/^PostgreSQL ([\d.]+).*/, '$1')}`];
  for (const name of engine.settings)
    facts.push(`${name} ${await ask(engine.name === 'postgresql' ? `SHOW ${name}` : `SELECT @@${name}`)}`);
  return facts.join(', ');
}
