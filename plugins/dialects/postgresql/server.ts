import type { Client, ClientConfig } from 'pg';
import { type Driver, loadDriver } from '../../driver.ts';
import { Queue } from '../../sql/queue.ts';
import type { Exec, Result, Session } from '../../sql/session.ts';
import { codeOf, ofOpen, ofOpening, refusal, unchanged } from './errors.ts';
import { quote } from './grammar.ts';
import type { Settings } from './settings.ts';

/** A session of a server, and what it said when it began. */
export interface ServerSession extends Session {
  readonly client: Client;
}

/** Connects with every setting in the startup packet. Throws `driver_missing` or what the server says. */
export async function openServer(url: string, settings: Settings): Promise<ServerSession> {
  const { default: pg } = await loadDriver(driver, settings.root);
  const client = new pg.Client(config(url, settings));
  let lost: Error | undefined;
  // Unheard it would end the process; whoever asks next is told.
  client.on('error', (error) => {
    lost ??= error;
  });
  try {
    await client.connect();
  } catch (error) {
    void client.end().catch(() => undefined);
    throw unchanged(ofOpening(error));
  }
  const queue = new Queue();
  const send: Exec = async (text) => {
    if (lost) throw refusal(ofOpen(lost));
    try {
      const answered = (await client.query(text)) as unknown as Answer | readonly Answer[];
      return (Array.isArray(answered) ? answered : [answered]).map(result);
    } catch (error) {
      throw lost && codeOf(error) === undefined ? refusal(ofOpen(lost)) : ofOpen(error);
    }
  };
  return {
    client,
    exec: (text) => queue.run(() => send(text)),
    alone: (work) => queue.run(() => work(send)),
    // As libpq does: it says good-bye and does not wait for the server to hang up.
    async close() {
      void client.end().catch(() => undefined);
      (client as Client & { unref(): void }).unref();
    },
  };
}

interface Answer {
  readonly rows: readonly Record<string, unknown>[];
  readonly rowCount: number | null;
}

const result = ({ rows, rowCount }: Answer): Result => ({ rows, count: rowCount ?? 0 });

const driver: Driver<typeof import('pg')> = {
  name: 'The driver of PostgreSQL',
  package: 'pg',
  load: () => asNode(() => import('pg')),
};

/**
 * Where there is no `navigator`, as before Node 21, pg makes a `Response` to find out whether it runs on Cloudflare,
 * and Node then loads all of fetch: that takes longer than pg itself.
 */
async function asNode<T>(load: () => Promise<T>): Promise<T> {
  if ('navigator' in globalThis) return load();
  Object.defineProperty(globalThis, 'navigator', { value: { userAgent: 'Node.js' }, configurable: true });
  try {
    return await load();
  } finally {
    Reflect.deleteProperty(globalThis, 'navigator');
  }
}

function config(url: string, settings: Settings): ClientConfig {
  const { connectTimeoutMs } = settings;
  const options = startup(settings);
  const parsed = new URL(url);
  const own = parsed.searchParams.getAll('options');
  // The driver would take those of the URL and drop ours. The server takes the last word on a setting.
  if (own.length > 0) parsed.searchParams.set('options', [...own, options].join(' '));
  return {
    connectionString: own.length > 0 ? parsed.href : url,
    application_name: 'svc',
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    options,
  };
}

/** What the whole session needs, sent with the first packet: no round trip. */
function startup({ schema, lockTimeoutMs }: Settings): string {
  const parameters: Readonly<Record<string, string>> = {
    lock_timeout: String(lockTimeoutMs),
    statement_timeout: '0',
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
    ...(schema !== undefined && { search_path: quote(schema) }),
  };
  return Object.entries(parameters)
    .map(([name, value]) => `-c ${name}=${value.replaceAll('\\', '\\\\').replaceAll(' ', '\\ ')}`)
    .join(' ');
}
