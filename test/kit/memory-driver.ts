import type { KeyValueDriver, RowOutcome, RowValues } from '../../plugins/dialects/shared/key-value/driver.ts';

/** What the connections of a database share. */
export interface Memory {
  readonly texts: Map<string, string>;
  readonly sets: Map<string, Set<string>>;
  readonly rows: Map<string, RowValues>;
  /** Called before each write of rows. */
  beforeWrite?: (() => void) | undefined;
}

const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));

/** A key-value engine for tests, in memory. */
export function memoryDriver({ texts, sets, rows, ...hooks }: Memory): KeyValueDriver {
  const isMet = (expected: readonly { readonly key: string; readonly text?: string }[]) =>
    expected.every(({ key, text }) => texts.get(key) === text);
  return {
    read: async (keys) => keys.map((key) => texts.get(key)),
    async entries(set, { low = '', high, limit, reverse }) {
      const all = [...(sets.get(set) ?? [])].filter(
        (one) => byBytes(one, low) >= 0 && (high === undefined || byBytes(one, high) < 0),
      );
      all.sort(byBytes);
      return (reverse ? all.reverse() : all).slice(0, limit);
    },
    async commit({ expected, before, put = [], remove = [], removeEntries = [], addEntries = [] }) {
      if (!isMet(expected)) return 'conflict';
      if (before !== undefined && before <= Date.now()) return 'late';
      for (const { key, text } of put) texts.set(key, text);
      for (const key of remove) texts.delete(key);
      for (const { set, entry } of removeEntries) sets.get(set)?.delete(entry);
      for (const { set, entry } of addEntries) sets.set(set, (sets.get(set) ?? new Set()).add(entry));
      return 'committed';
    },
    async *scan(prefix, which) {
      for (const key of [...rows.keys()]) if (which === 'rows' && key.startsWith(prefix)) yield [key];
    },
    readRows: async (keys, fields) =>
      keys.map((key) => Object.fromEntries(fields.map(({ name }) => [name, rows.get(key)?.[name] ?? null]))),
    async writeRows(writes, expected) {
      hooks.beforeWrite?.();
      if (!isMet(expected)) return 'conflict';
      return writes.map(({ key, read, set = {}, moveTo, remove }): RowOutcome => {
        const row = rows.get(key);
        if (!row) return 'missing';
        const isRead = ([name, value]: [string, Uint8Array | null]) => text(row[name] ?? null) === text(value);
        if (!Object.entries(read).every(isRead)) return 'changed';
        if (moveTo !== undefined && rows.has(moveTo)) return 'taken';
        if (remove || moveTo !== undefined) rows.delete(key);
        if (!remove) rows.set(moveTo ?? key, { ...row, ...set });
        return 'written';
      });
    },
    query: async () => [],
    now: async () => new Date(),
    toSvcError: (error) => error,
    close: async () => undefined,
  };
}

export const text = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes).toString();
export const emptyMemory = (): Memory => ({ texts: new Map(), sets: new Map(), rows: new Map() });
