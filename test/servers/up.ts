import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { stopServer } from './down.ts';
import { defaultUrls, type Engine, title, urlVariable } from './engine.ts';
import { cassandra } from './engines/cassandra.ts';
import { dynamodb } from './engines/dynamodb.ts';
import { mariadb } from './engines/mariadb.ts';
import { mongodb } from './engines/mongodb.ts';
import { mysql } from './engines/mysql.ts';
import { postgresql } from './engines/postgresql.ts';
import { rabbitmq } from './engines/rabbitmq.ts';
import { handshake } from './handshake.ts';
import { launch } from './launch.ts';
import { isAlive, type ProcessIdentity } from './process.ts';
import { errorLine } from './program.ts';
import type { ReportProgress, Source } from './source.ts';
import { type StartedServer, saveServer, startedServers, withStateLock } from './state.ts';

export type UpResult = { readonly engine: Engine } & (
  | {
      readonly url: string;
      readonly version: string;
      /** For example "found running" or "started from an installed MySQL". */
      readonly how: string;
    }
  | { readonly missing: string }
);

export interface UpOptions {
  /** The run that uses the servers; without one, started servers stay until `down`. */
  readonly user?: ProcessIdentity;
  readonly report: (engine: Engine, progress: string) => void;
  readonly onWait?: () => void;
}

/** Finds or starts a server of each of these engines, concurrently. */
export async function up(
  engines: readonly Engine[],
  { user, report, onWait }: UpOptions,
): Promise<readonly UpResult[]> {
  const usage = { kept: user === undefined, users: user === undefined ? [] : [user] };
  return withStateLock(
    () => Promise.all(engines.map((engine) => findOrStart(engine, usage, (progress) => report(engine, progress)))),
    onWait,
  );
}

type Usage = Pick<StartedServer, 'kept' | 'users'>;

async function findOrStart(engine: Engine, usage: Usage, report: ReportProgress): Promise<UpResult> {
  const configuredUrl = process.env[urlVariable(engine)];
  if (configuredUrl !== undefined) {
    const how = `at ${urlVariable(engine)}`;
    try {
      return { engine, url: configuredUrl, version: await handshake(engine, configuredUrl), how };
    } catch (error) {
      return { engine, missing: `${title(engine)}: no usable server answers ${how}: ${errorLine(error)}` };
    }
  }
  const started = startedServers().find((server) => server.engine === engine);
  const merged = {
    kept: usage.kept || started?.kept === true,
    users: [...aliveUsers(started?.users ?? []), ...usage.users],
  };
  if (started) {
    const version = await versionIfAlive(started);
    if (version !== undefined) {
      saveServer({ ...started, ...merged });
      return { engine, url: started.url, version, how: `started before, from ${started.from}` };
    }
    report('does not answer any more; restarting it');
    await stopServer(started);
  }
  for (const url of started ? [] : defaultUrls(engine)) {
    try {
      return { engine, url, version: await handshake(engine, url), how: 'found running' };
    } catch {
      // Nothing or another service listens there: a server that is started gets another port.
    }
  }
  const reasons: string[] = [];
  for (const source of SOURCES[engine]) {
    const problem = source.whyUnavailable();
    if (problem !== undefined) {
      reasons.push(problem);
      continue;
    }
    try {
      const url = await start(engine, source, merged, report, started && portOf(started.url));
      return { engine, url, version: await handshake(engine, url), how: `started from ${source.from}` };
    } catch (error) {
      report(`cannot be started from ${source.from}: ${errorLine(error)}`);
      reasons.push(`${source.from}: ${errorLine(error)}`);
    }
  }
  return { engine, missing: `${title(engine)}: ${reasons.join('; ')}` };
}

async function start(
  engine: Engine,
  source: Source,
  usage: Usage,
  report: ReportProgress,
  port: number | undefined,
): Promise<string> {
  const prepared = await source.prepare(report);
  const folder = join(prepared.folder, `${engine}-${randomUUID().slice(-8)}`);
  const entry: StartedServer = { engine, url: '', from: source.from, processes: [], folder, ...usage };
  saveServer(entry);
  mkdirSync(folder, { mode: 0o755 });
  try {
    return await prepared.start(launch(entry, report, port));
  } catch (error) {
    const recorded = startedServers().find((server) => server.folder === folder);
    await stopServer(recorded ?? entry);
    throw error;
  }
}

const aliveUsers = (users: readonly ProcessIdentity[]): readonly ProcessIdentity[] => users.filter(isAlive);

/** Its version, or undefined if it has died. Tries twice, because the machine may be busy. */
async function versionIfAlive({ engine, url, processes }: StartedServer): Promise<string | undefined> {
  for (let tries = 0; tries < 2 && url !== '' && processes.every(isAlive); tries++) {
    const version = await handshake(engine, url).catch(() => undefined);
    if (version !== undefined) return version;
  }
  return undefined;
}

const portOf = (url: string): number | undefined => Number(/:(\d+)\/?[^:]*$/.exec(url)?.[1]) || undefined;

/** Sources of each engine's server in order of preference; the first available one is used. */
const SOURCES: Readonly<Record<Engine, readonly Source[]>> = {
  postgresql,
  mysql,
  mariadb,
  mongodb,
  dynamodb,
  cassandra,
  rabbitmq,
};
