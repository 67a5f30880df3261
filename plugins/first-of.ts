/** A list that is read bit by bit. */
export type ReadOn<T> = (
  after: T | undefined,
  limit: number,
) => Promise<{
  readonly items: readonly T[];
  /** There may be more behind them: behind none there is nothing. */
  readonly more: boolean;
}>;

/** Beside its share, as lists are never all of one length. */
const SPARE = 8;

/** The first of several lists, each in the order of `compare`: of each about as much is read as is needed. */
export async function firstOf<T>(
  lists: readonly ReadOn<T>[],
  size: number,
  compare: (a: T, b: T) => number,
): Promise<T[]> {
  const share = Math.min(size, Math.ceil(size / lists.length) + SPARE);
  const open = lists.map((read) => ({ read, items: [] as readonly T[], at: 0, more: true }));
  const found: T[] = [];
  while (found.length < size) {
    await Promise.all(
      open
        .filter(({ items, at, more }) => more && at === items.length)
        .map(async (list) => Object.assign(list, { ...(await list.read(list.items.at(-1), share)), at: 0 })),
    );
    let least: (typeof open)[number] | undefined;
    for (const list of open) {
      const item = list.items[list.at];
      if (item === undefined) continue;
      if (!least || compare(item, least.items[least.at] as T) < 0) least = list;
    }
    if (!least) break;
    found.push(least.items[least.at] as T);
    least.at += 1;
  }
  return found;
}
