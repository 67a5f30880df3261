import type { Socket } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import type { Client, ClientConfig } from 'pg';
import { assertInstalled, type Driver, loadDriver } from '../../../shared/driver.ts';
import { SerialQueue } from '../../../shared/serial-queue.ts';
import { withNothingChanged } from '../../shared/errors.ts';
import { abandonAfter, type ExecSql, type Result, type Session } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/names.ts';
import { notifyOf } from '../records/notifications.ts';
import { asLostIfUnreachable, codeOf, toConnectError, toSvcError } from './errors.ts';
import { DISABLE_TIMEOUTS, type Settings } from './settings.ts';

interface ServerSession extends Session {
  readonly client: Client;
}

/** Connects with every setting in the startup packet. Throws `driver_missing` or the error of the connection. */
export async function openServer(url: string, settings: Settings): Promise<ServerSession> {
  const { default: pg } = await loadDriver(driver, settings.root);
  const client = new pg.Client(clientConfig(url, settings));
  let lost: Error | undefined;
  // Without a listener the error would end the process; the next statement throws it.
  client.on('error', (error) => {
    lost ??= error;
  });
  try {
    await client.connect();
  } catch (error) {
    void client.end().catch(() => undefined);
    throw withNothingChanged(toConnectError(error));
  }
  const queue = new SerialQueue();
  const abandon = (error: Error) => (client as Client & DriverSocket).connection.stream.destroy(error);
  const send: ExecSql = async (text, timeoutMs) => {
    if (lost) throw toSvcError(asLostIfUnreachable(lost));
    try {
      // A text of several statements returns a list, which the driver's types leave out.
      const results = (await abandonAfter(timeoutMs, client.query(text), abandon)) as unknown as
        | DriverResult
        | readonly DriverResult[];
      return (Array.isArray(results) ? results : [results]).map(toResult);
    } catch (error) {
      throw lost && codeOf(error) === undefined ? toSvcError(asLostIfUnreachable(lost)) : asLostIfUnreachable(error);
    }
  };
  return {
    client,
    exec: (text, timeoutMs) => queue.run(() => send(text, timeoutMs)),
    exclusive: (work) => queue.run(() => work(send)),
    // Like libpq: sends the Terminate message and does not wait for the server to close the socket.
    async close() {
      void client.end().catch(() => undefined);
      (client as Client & { unref(): void }).unref();
    },
  };
}

/** Throws `driver_missing` if a program of the project cannot load the driver. */
export const assertDriver = (root: string): Promise<void> => assertInstalled(driver, root);

/** Missing from the driver's types. */
interface DriverSocket {
  readonly connection: { readonly stream: Socket };
}

interface DriverResult {
  readonly rows: readonly Record<string, unknown>[];
  readonly rowCount: number | null;
}

const toResult = ({ rows, rowCount }: DriverResult): Result => ({ rows, count: rowCount ?? 0 });

const driver: Driver<typeof import('pg')> = {
  name: 'The PostgreSQL driver',
  package: 'pg',
  load: () => withNavigator(() => import('pg')),
};

/**
 * Before Node 21 there is no `navigator`, and pg creates a `Response` to detect Cloudflare. Node then loads all of fetch,
 * which takes longer than loading pg.
 */
async function withNavigator<T>(load: () => Promise<T>): Promise<T> {
  if ('navigator' in globalThis) return load();
  Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Node.js' }, configurable: true });
  try {
    return await load();
  } finally {
    Reflect.deleteProperty(globalThis, 'navigator');
  }
}

function clientConfig(url: string, settings: Settings): ClientConfig {
  const { connectTimeoutMs } = settings;
  const options = startupOptions(settings);
  const parsed = new URL(url);
  const urlOptions = parsed.searchParams.getAll('options');
  // The driver would use the options of the URL in place of these. The server uses the last value of a setting.
  if (urlOptions.length > 0) parsed.searchParams.set('options', [...urlOptions, options].join(' '));
  return {
    connectionString: urlOptions.length > 0 ? parsed.href : url,
    application_name: 'svc',
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    options,
  };
}

/** Settings of the session, sent in the startup packet to save a round trip. */
function startupOptions({ schema, lockTimeoutMs, statementTimeoutMs }: Settings): string {
  const parameters: Readonly<Record<string, string>> = {
    lock_timeout: String(lockTimeoutMs),
    statement_timeout: String(statementTimeoutMs),
    idle_in_transaction_session_timeout: '0',
    tcp_keepalives_idle: '30',
    standard_conforming_strings: 'on',
    quote_all_identifiers: 'off',
    timezone: 'UTC',
    datestyle: 'ISO',
    intervalstyle: 'postgres',
    extra_float_digits: '1',
    bytea_output: 'hex',
    client_min_messages: 'warning',
    ...(schema !== undefined && { search_path: quoteIdentifier(schema) }),
  };
  return Object.entries(parameters)
    .map(([name, value]) => `-c ${name}=${value.replaceAll('\\', '\\\\').replaceAll(' ', '\\ ')}`)
    .join(' ');
}

const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 10_000;

/**
 * LISTEN on a separate connection, reopened when it is lost. `notify` is called once after each reopening, because
 * notifications sent in between are lost.
 */
export async function listenOnServer(
  url: string,
  settings: Settings,
  channel: string,
  notify: (key?: string) => void,
): Promise<() => Promise<void>> {
  const stopped = new AbortController();
  let session = await listen(url, settings, channel, notify, reopen);
  async function reopen(): Promise<void> {
    for (let pause = FIRST_RETRY_MS; !stopped.signal.aborted; pause = Math.min(pause * 2, LONGEST_RETRY_MS)) {
      try {
        await wait(pause, undefined, { signal: stopped.signal, ref: false });
        session = await listen(url, settings, channel, notify, reopen);
        if (stopped.signal.aborted) await session.close();
        notify();
        return;
      } catch {
        // The next attempt follows after a longer pause; watchers poll as well.
      }
    }
  }
  return async () => {
    stopped.abort();
    session.client.removeAllListeners('end');
    await session.close();
  };
}

async function listen(
  url: string,
  settings: Settings,
  channel: string,
  notify: (key?: string) => void,
  onEnd: () => Promise<void>,
): Promise<ServerSession> {
  const session = await openServer(url, settings);
  session.client.on('notification', ({ payload }) => notifyOf(payload ?? '', notify));
  await session.exec(`SELECT ${DISABLE_TIMEOUTS}; LISTEN ${quoteIdentifier(channel)}`, settings.requestTimeoutMs);
  session.client.once('end', () => void onEnd());
  return session;
}
