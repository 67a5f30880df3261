import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { deserialize, serialize } from 'node:v8';
import type { KeyValueFile, KeyValueRow } from '../../../plugins/dialects/toolkit.ts';
import { openDatabase as openRight } from '../../kit/file-store.ts';

/** Files of key-value engines that break one promise of the contract each, made from a right one. */

const BETWEEN_PARTS_MS = 200;

type Open = (path: string) => Promise<KeyValueFile>;
type Writes = Map<string, string | KeyValueRow | undefined>;

const withFile =
  (change: (file: KeyValueFile) => Partial<KeyValueFile>): Open =>
  async (path) => {
    const file = await openRight(path);
    return { ...file, ...change(file) };
  };

/** Collects the writes of `work`, and stores them by `store`. */
const storingBy = (store: (file: KeyValueFile, writes: Writes) => void | Promise<void>): Open =>
  withFile((file) => ({
    async transaction(work) {
      const writes: Writes = new Map();
      const result = work({
        get: (key) => file.get(key),
        put: (key, value) => void writes.set(key, value),
        remove: (key) => void writes.set(key, undefined),
      });
      await store(file, writes);
      return result;
    },
  }));

const write = (file: KeyValueFile, writes: Iterable<readonly [string, string | KeyValueRow | undefined]>) =>
  file.transaction(({ put, remove }) => {
    for (const [key, value] of writes) {
      if (value === undefined) remove(key);
      else put(key, value);
    }
  });

export const wrongFiles = {
  'returns promises of values': withFile(({ get }) => ({ get: async (key) => get(key) })),
  'sorts keys by UTF-16': withFile((file) => ({ keys: async (range) => [...(await file.keys(range))].sort() })),
  'keeps the writes of failed work': withFile((file) => ({
    transaction: (work) =>
      work({
        get: (key) => file.get(key),
        put: (key, value) => void write(file, [[key, value]]),
        remove: (key) => void write(file, [[key, undefined]]),
      }),
  })),
  'stores the writes of a transaction in two parts': storingBy(async (file, writes) => {
    const all = [...writes];
    await write(file, all.slice(0, all.length / 2));
    // As if it stored more: on a busy machine a kill hits a moment between two small writes only by chance.
    await wait(BETWEEN_PARTS_MS);
    await write(file, all.slice(all.length / 2));
  }),
  'stores half of the writes before the work has ended, and takes them back if it fails': withFile((file) => ({
    async transaction(work) {
      const before: Writes = new Map();
      const pending: Writes = new Map();
      const set = (key: string, value: string | KeyValueRow | undefined) => {
        if (!before.has(key)) before.set(key, file.get(key) as KeyValueRow | undefined);
        pending.set(key, value);
        if (pending.size < 1_000) return;
        write(file, pending);
        pending.clear();
      };
      try {
        const result = work({ get: (key) => file.get(key), put: set, remove: (key) => set(key, undefined) });
        await write(file, pending);
        return result;
      } catch (error) {
        await write(file, before);
        throw error;
      }
    },
  })),
  'acknowledges a transaction before it is stored': storingBy((file, writes) => {
    setTimeout(() => void write(file, writes), 1_000);
  }),
  /** Every process can open it. */
  'has no lock': async (path: string): Promise<KeyValueFile> => {
    const file = await openRight(`${path}.of-${process.pid}`);
    const read = () => new Map<string, string | KeyValueRow>(existsSync(path) ? deserialize(readFileSync(path)) : []);
    return {
      ...file,
      get: (key) => read().get(key),
      transaction(work) {
        const changed = read();
        const result = work({
          get: (key) => changed.get(key),
          put: (key, value) => void changed.set(key, value),
          remove: (key) => void changed.delete(key),
        });
        writeFileSync(`${path}.${process.pid}`, serialize([...changed]));
        renameSync(`${path}.${process.pid}`, path);
        return result;
      },
    };
  },
} satisfies Record<string, Open>;

export type WrongFile = keyof typeof wrongFiles;

export function moduleOf(name: WrongFile): URL {
  const url = new URL('./key-value-files.ts', import.meta.url);
  url.searchParams.set('wrong', name);
  return url;
}

/** From the first argument of `key-value-file-process`, since a bundle does not know the URL that it was imported by. */
const chosen = new URL(process.argv[2] ?? '', import.meta.url).searchParams.get('wrong') as WrongFile;

export const openDatabase: Open = wrongFiles[chosen];
