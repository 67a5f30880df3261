import { type ConnectOptions, SvcError } from '@svc/sdk';
import { booleanOption, connectTimeoutMs, type KeyValueDriver, readSettings } from '@svc/sdk/dialect';
import { ClientClosedError, createClient, RESP_TYPES, type RedisArgument } from 'redis';
import { assertDurable, toSvcError } from './errors.ts';
import { COMMIT, WRITE_ROWS } from './scripts.ts';

const OPTIONS = { connectTimeoutMs, allowVolatile: booleanOption('accepts a server that may lose writes', false) };
const AS_BYTES = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } };

/** `database` keeps notifications apart: the databases of a server share their channels. */
export async function open(url: string, database: string, options: ConnectOptions): Promise<KeyValueDriver> {
  const { connectTimeoutMs: connectTimeout, allowVolatile } = readSettings('Redis', OPTIONS, options);
  const clients = new Map<{ readonly isOpen: boolean; destroy(): void }, Promise<unknown>>();
  const close = async () => {
    for (const [client, opening] of clients) {
      // Destroyed while it connects, a client would leave its socket open.
      await opening.catch(() => undefined);
      if (client.isOpen) client.destroy();
    }
  };
  const connect = async () => {
    const socket = { connectTimeout, reconnectStrategy: false } as const;
    // The call that fails reports the error. "connectTimeout" ends once the socket is open, also without an answer.
    const client = createClient({ url, RESP: 2, socket }).on('error', () => undefined);
    const late = new Promise<never>((_, reject) => setTimeout(reject, connectTimeout, new Error('timeout')).unref());
    const opening = Promise.race([client.connect(), late]);
    clients.set(client, opening);
    return opening;
  };
  const prepare = async () => {
    const client = await connect();
    const [, version] = /redis_version:(\S+)/.exec(await client.info('server')) ?? [];
    const config = await client.configGet(['appendonly', 'appendfsync', 'maxmemory-policy']).catch(() => undefined);
    if (!allowVolatile) assertDurable(config);
    const { appendonly = 'unknown', appendfsync = 'unknown' } = config ?? {};
    return { client, name: `Redis ${version}, appendonly ${appendonly}, appendfsync ${appendfsync}` };
  };
  const { client, name } = await prepare().catch(async (error) => {
    await close();
    throw toSvcError(error);
  });
  const send = <T>(...command: RedisArgument[]) => client.sendCommand<T>(command);
  const channelOf = (collection: string) => `_svc:${database}:${collection}`;
  return {
    server: name,
    read: async (keys) => (await send<(string | null)[]>('MGET', ...keys)).map((text) => text ?? undefined),
    entries(set, { low, high, limit, reverse }) {
      const range = [low === undefined ? '-' : `[${low}`, high === undefined ? '+' : `(${high}`];
      const order = reverse ? [...range.reverse(), 'BYLEX', 'REV'] : [...range, 'BYLEX'];
      return send('ZRANGE', set, ...order, 'LIMIT', '0', String(limit));
    },
    commit({ notify = [], ...changes }) {
      const messages = notify.map(({ collection, key }) => ({ channel: channelOf(collection), key }));
      return send('EVAL', COMMIT, '0', JSON.stringify({ ...changes, messages }));
    },
    async *scan(prefix, which) {
      const pattern = `${prefix.replace(/[*?[\]\\]/g, '\\$&')}*`;
      const types = which === 'rows' ? ['hash'] : ['string', 'list', 'set', 'zset', 'stream'];
      for (const TYPE of types) yield* client.scanIterator({ MATCH: pattern, COUNT: 1000, TYPE });
    },
    readRows: (keys, fields) =>
      Promise.all(
        keys.map(async (key) => {
          const names = fields.map(({ name }) => name);
          const values = await client.sendCommand<(Buffer | null)[]>(['HMGET', key, ...names], AS_BYTES);
          return Object.fromEntries(names.map((name, at) => [name, values[at] ?? null]));
        }),
      ),
    writeRows(writes, expected) {
      const values: Buffer[] = [];
      const put = (row: Readonly<Record<string, Uint8Array | null>>) =>
        Object.fromEntries(
          Object.entries(row).map(([name, value]) => [name, value && values.push(Buffer.from(value)) + 1]),
        );
      const rows = writes.map(({ read, set = {}, ...change }) => ({ ...change, read: put(read), set: put(set) }));
      const keys = writes.map(({ key }) => key);
      return send('EVAL', WRITE_ROWS, String(keys.length), ...keys, JSON.stringify({ expected, rows }), ...values);
    },
    async query(text) {
      const command: unknown = JSON.parse(text);
      if (!Array.isArray(command)) throw new SvcError('value_invalid', 'A Redis command is a JSON array of texts.');
      const reply = await send<unknown>(...command.map(String));
      return [reply].flat().flatMap((one) => (one === null || one === 0 ? [] : [{ reply: one }]));
    },
    async now() {
      const [seconds, microseconds] = await send<string[]>('TIME');
      return new Date(Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000));
    },
    async watch(collection, notify) {
      const listener = await connect();
      // `close` was called in between.
      if (!client.isOpen) return close().then(() => Promise.reject(toSvcError(new ClientClosedError())));
      await listener.subscribe(channelOf(collection), (key) => notify(key));
      return async () => void (listener.isOpen && listener.destroy());
    },
    toSvcError,
    close,
  };
}
