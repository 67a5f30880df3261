import { createHash } from 'node:crypto';
import { Client } from 'pg';
import { definePlugin } from '../../core/plugin.ts';
import {
  errorConverter,
  keyValueDialect,
  type OrderedKeyServer,
  orderedKeyDriver,
  readSettings,
  UNSUPPORTED_BY_KEY_VALUE,
} from '../../plugins/dialects/toolkit.ts';

/*
 * A server with ordered keys and commits under conditions: one table of PostgreSQL. It does no more than such a server: a
 * commit names at most `MAX_KEYS` keys in each list.
 */

const MAX_KEYS = 50;

const bytes = (texts: readonly string[]): Buffer[] => texts.map((text) => Buffer.from(text));
const channelOf = (key: string): string => `k${createHash('sha256').update(key).digest('hex').slice(0, 40)}`;

function assertFits(...lists: readonly (readonly unknown[])[]): void {
  for (const { length } of lists) if (length > MAX_KEYS) throw new Error(`${length} keys are too many`);
}

export const CREATE_KEYS = 'CREATE TABLE keys (k bytea PRIMARY KEY, v bytea NOT NULL)';

async function connected(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

async function open(url: string): Promise<OrderedKeyServer> {
  const client = await connected(url);
  const watching = new Set<Client>();
  let queue: Promise<unknown> = Promise.resolve();
  /** One after the other: the statements of a transaction share the connection. */
  const alone = <T>(work: () => Promise<T>): Promise<T> => {
    const result = queue.then(work);
    queue = result.catch(() => undefined);
    return result;
  };
  const get = async (keys: readonly string[]) => {
    assertFits(keys);
    const { rows } = await client.query('SELECT k, v FROM keys WHERE k = ANY($1)', [bytes(keys)]);
    const found = new Map(rows.map(({ k, v }) => [String(k), String(v)]));
    return keys.map((key) => found.get(key));
  };
  return {
    server: 'ordered keys',
    maxKeys: MAX_KEYS,
    get: (keys) => alone(() => get(keys)),
    keys: ({ start, end, limit, reverse }) =>
      alone(async () => {
        const order = reverse ? 'DESC' : 'ASC';
        const text = `SELECT k FROM keys WHERE k >= $1 AND k < $2 ORDER BY k ${order} LIMIT $3`;
        return (await client.query(text, [...bytes([start, end]), limit])).rows.map(({ k }) => String(k));
      }),
    commit: ({ expected, put, remove }) =>
      alone(async () => {
        assertFits(expected, [...put, ...remove]);
        await client.query('BEGIN; LOCK TABLE keys IN EXCLUSIVE MODE');
        try {
          const texts = await get(expected.map(({ key }) => key));
          const isMet = expected.every(({ text }, at) => texts[at] === text);
          if (isMet) {
            await client.query('DELETE FROM keys WHERE k = ANY($1)', [bytes(remove)]);
            const added = 'INSERT INTO keys SELECT * FROM unnest($1::bytea[], $2::bytea[])';
            const values = [bytes(put.map(({ key }) => key)), bytes(put.map(({ text }) => text))];
            await client.query(`${added} ON CONFLICT (k) DO UPDATE SET v = excluded.v`, values);
            for (const { key, text } of put.filter((one) => one.key.startsWith('_svc_changed')))
              await client.query('SELECT pg_notify($1, $2)', [channelOf(key), text]);
          }
          await client.query('COMMIT');
          return isMet;
        } catch (error) {
          await client.query('ROLLBACK').catch(() => undefined);
          throw error;
        }
      }),
    now: () => alone(async () => (await client.query('SELECT clock_timestamp() AS now')).rows[0].now),
    async watch(key, onPut) {
      const listener = await connected(url);
      watching.add(listener);
      listener.on('notification', ({ payload }) => onPut(payload ?? ''));
      await listener.query(`LISTEN ${channelOf(key)}`);
      return () => {
        watching.delete(listener);
        return listener.end();
      };
    },
    async close() {
      for (const one of [client, ...watching]) await one.end();
    },
    toSvcError: errorConverter({ engine: 'Ordered keys', messages: { connection_lost: /terminat|not queryable/i } }),
  };
}

export type ServerChange = (server: OrderedKeyServer) => Partial<OrderedKeyServer>;

/** The dialect of such a server, with other functions. */
export const orderedKeysWith = (change: ServerChange) =>
  keyValueDialect({
    name: 'ordered-keys',
    unsupported: UNSUPPORTED_BY_KEY_VALUE,
    identify: (url) => new URL(url).host + new URL(url).pathname,
    async open(url, options) {
      readSettings('Ordered keys', {}, options);
      const server = await open(url);
      return orderedKeyDriver({ ...server, ...change(server) });
    },
  });

export const orderedKeys = orderedKeysWith(() => ({}));

export default definePlugin({
  name: 'ordered-keys',
  apply: (kernel) => kernel.dialects.register('ordered-keys', orderedKeys),
});
