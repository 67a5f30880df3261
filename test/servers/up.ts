import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { stopServer } from './down.ts';
import { type Engine, title, usualUrls, variable } from './engine.ts';
import { handshake } from './handshake.ts';
import { launch } from './launch.ts';
import { type Identity, isAlive } from './process.ts';
import type { Source } from './source.ts';
import { SOURCES } from './sources.ts';
import { exclusively, record, type Started, servers } from './state.ts';
import { told } from './told.ts';

export type Up = { readonly engine: Engine } & (
  | {
      readonly url: string;
      readonly version: string;
      /** As in "answered where SVC_TEST_MYSQL_URL says". */
      readonly how: string;
    }
  | { readonly missing: string }
);

export interface UpOptions {
  /** The run that uses the servers; without one what is started stays until `down`. */
  readonly user?: Identity;
  readonly tell: (engine: Engine, progress: string) => void;
  readonly onWait?: () => void;
}

/** Finds or brings up a server of each of these engines, all at once. */
export async function up(engines: readonly Engine[], { user, tell, onWait }: UpOptions): Promise<readonly Up[]> {
  const claims = { kept: user === undefined, users: user === undefined ? [] : [user] };
  return exclusively(
    () => Promise.all(engines.map((engine) => one(engine, claims, (progress) => tell(engine, progress)))),
    onWait,
  );
}

type Claims = Pick<Started, 'kept' | 'users'>;

async function one(engine: Engine, claims: Claims, tell: (progress: string) => void): Promise<Up> {
  const promised = process.env[variable(engine)];
  if (promised !== undefined) {
    const how = `where ${variable(engine)} says`;
    try {
      return { engine, url: promised, version: await handshake(engine, promised), how };
    } catch (error) {
      return { engine, missing: `${title(engine)}: nothing usable answers ${how}: ${told(error)}` };
    }
  }
  const own = servers().find((server) => server.engine === engine);
  const both = { kept: claims.kept || own?.kept === true, users: [...living(own?.users ?? []), ...claims.users] };
  if (own) {
    const version = await answer(own);
    if (version !== undefined) {
      record({ ...own, ...both });
      return { engine, url: own.url, version, how: `started before, from ${own.from}` };
    }
    tell('does not answer any more, and is started again');
    await stopServer(own);
  }
  for (const url of own ? [] : usualUrls(engine)) {
    try {
      return { engine, url, version: await handshake(engine, url), how: 'found running' };
    } catch {
      // Nobody there, or somebody else: what is started gets another port.
    }
  }
  const reasons: string[] = [];
  for (const source of SOURCES[engine]) {
    const missing = source.missing();
    if (missing !== undefined) {
      reasons.push(missing);
      continue;
    }
    try {
      const url = await start(engine, source, both, tell, own && portOf(own.url));
      return { engine, url, version: await handshake(engine, url), how: `started from ${source.from}` };
    } catch (error) {
      tell(`cannot be had from ${source.from}: ${told(error)}`);
      reasons.push(`${source.from}: ${told(error)}`);
    }
  }
  return { engine, missing: `${title(engine)}: ${reasons.join('; ')}` };
}

async function start(
  engine: Engine,
  source: Source,
  claims: Claims,
  tell: (progress: string) => void,
  port: number | undefined,
): Promise<string> {
  const prepared = await source.prepare(tell);
  const folder = join(prepared.folder, `${engine}-${randomUUID().slice(-8)}`);
  const entry: Started = { engine, url: '', from: source.from, processes: [], folder, ...claims };
  record(entry);
  mkdirSync(folder, { mode: 0o755 });
  try {
    return await prepared.start(launch(entry, tell, port));
  } catch (error) {
    const begun = servers().find((server) => server.folder === folder);
    await stopServer(begun ?? entry);
    throw error;
  }
}

export const living = (users: readonly Identity[]): readonly Identity[] => users.filter(isAlive);

/** Its version, or nothing where it has died. A second look, because the machine may be busy. */
async function answer({ engine, url, processes }: Started): Promise<string | undefined> {
  for (let tries = 0; tries < 2 && url !== '' && processes.every(isAlive); tries++) {
    const version = await handshake(engine, url).catch(() => undefined);
    if (version !== undefined) return version;
  }
  return undefined;
}

const portOf = (url: string): number | undefined => Number(/:(\d+)\/?[^:]*$/.exec(url)?.[1]) || undefined;
