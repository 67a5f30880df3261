import { once } from 'node:events';
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { deserialize, serialize } from 'node:v8';
import { definePlugin } from '../../core/plugin.ts';
import {
  embeddedKeyValueDialect,
  errorConverter,
  type KeyValueFile,
  UNSUPPORTED_BY_KEY_VALUE,
} from '../../plugins/dialects/toolkit.ts';

/** A key-value engine for tests: all values in one file, which one process at a time can open. */
export async function openDatabase(file: string): Promise<KeyValueFile> {
  // An abstract socket of Linux ends with its process.
  const lock = createServer().listen(`\0svc-file-store:${file}`);
  await once(lock, 'listening').catch(() => {
    throw new Error(`${file} is locked`);
  });
  lock.unref();
  let values = new Map<string, unknown>(existsSync(file) ? deserialize(readFileSync(file)) : []);
  const save = () => {
    const handle = openSync(`${file}.new`, 'w');
    writeSync(handle, serialize([...values]));
    fsyncSync(handle);
    closeSync(handle);
    renameSync(`${file}.new`, file);
  };
  if (!existsSync(file)) save();
  const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return {
    server: 'File Store 1',
    get: (key) => values.get(key),
    keys({ start, end, limit, reverse }) {
      const keys = [...values.keys()].filter((key) => byBytes(key, start) >= 0 && byBytes(key, end) < 0).sort(byBytes);
      return (reverse ? keys.reverse() : keys).slice(0, limit);
    },
    transaction(work) {
      const changed = new Map(values);
      const result = work({
        get: (key) => values.get(key),
        put: (key, value) => changed.set(key, value),
        remove: (key) => changed.delete(key),
      });
      values = changed;
      save();
      return result;
    },
    async close() {
      rmSync(`${file}.new`, { force: true });
      await once(lock.close(), 'close');
    },
  };
}

export const fileStore = embeddedKeyValueDialect({
  name: 'file-store',
  unsupported: UNSUPPORTED_BY_KEY_VALUE,
  toSvcError: errorConverter({ engine: 'File Store', messages: { database_in_use: /is locked/ } }),
  open: openDatabase,
});

export default definePlugin({
  name: 'file-store',
  apply: (kernel) => kernel.dialects.register(fileStore.name, fileStore),
});
