import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { cacheFolder } from '../servers/cache.ts';
import { handshake } from '../servers/handshake.ts';
import { freePort } from '../suites/free-port.ts';

/** A DynamoDB Local for one test file, in memory: its data is gone once it is killed. */
export interface OwnDynamodb {
  readonly port: number;
  url(prefix: string): string;
  kill(): Promise<void>;
}

/** Several servers may start at the same time on two cores. */
const PATIENCE_MS = 120_000;
const JAR = /^DynamoDBLocal-[\d.]+\.jar$/;

/** The library that `npm run servers` has downloaded; undefined if it was never run. */
function library(): string | undefined {
  const folders = readdirSync(cacheFolder()).map((name) => join(cacheFolder(), name, 'lib'));
  return folders.find((folder) => existsSync(folder) && readdirSync(folder).some((one) => JAR.test(one)));
}

/**
 * Why no server can be started here; undefined if one can. `npm test` starts the shared server for every file that
 * imports this one, because it contains find('dynamodb'), and so downloads the library.
 */
export function unavailable(): string | undefined {
  if (library() !== undefined) return undefined;
  const reason = 'DynamoDB Local is not in the cache: npm run servers -- up';
  if (process.env.SVC_TEST_REQUIRE === 'all') throw new Error(reason);
  return reason;
}

/** Tables and indexes are active immediately; on the shared server an index takes half a minute. */
export async function ownDynamodb(): Promise<OwnDynamodb> {
  const lib = library();
  if (lib === undefined) throw new Error(unavailable());
  const port = await freePort();
  const child: ChildProcess = spawn(
    'java',
    [
      ...['-Xms64m', '-Xmx768m', '-XX:TieredStopAtLevel=1', `-Djava.library.path=${lib}`, '-cp', `${lib}/*`],
      ...['com.amazonaws.services.dynamodbv2.local.main.ServerRunner', '-port', String(port)],
      ...['-sharedDb', '-inMemory', '-disableTelemetry'],
    ],
    { stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  // Also if the test fails.
  process.once('exit', () => child.kill('SIGKILL'));
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await answers(port))) {
    if (child.exitCode !== null) throw new Error(`DynamoDB Local ended with ${child.exitCode}`);
    if (Date.now() > deadline) throw new Error('DynamoDB Local did not start');
    await wait(100);
  }
  return {
    port,
    url: (prefix) => `dynamodb://127.0.0.1:${port}/${prefix}`,
    async kill() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

const answers = (port: number): Promise<boolean> =>
  handshake('dynamodb', `http://127.0.0.1:${port}`).then(
    () => true,
    () => false,
  );
