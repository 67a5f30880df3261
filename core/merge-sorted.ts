/** Reads one chunk of a sorted list. */
export type SortedList<T> = (
  after: T | undefined,
  limit: number,
) => Promise<{
  readonly items: readonly T[];
  /** More items may follow. An empty chunk ends the list. */
  readonly more: boolean;
}>;

/** The number of items of one list is about Poisson-distributed. */
const DEVIATIONS = 3;

/**
 * The first `size` items of several lists sorted by `compare`. Reads little more of each list than needed: its even share,
 * and `extra`, by default so many that few lists of items that are distributed at random are read twice.
 */
export async function mergeSorted<T>(
  lists: readonly SortedList<T>[],
  size: number,
  compare: (a: T, b: T) => number,
  extra = Math.ceil(DEVIATIONS * Math.sqrt(size / lists.length)),
): Promise<T[]> {
  const share = Math.min(size, Math.ceil(size / lists.length) + extra);
  const open = lists.map((read) => ({ read, items: [] as readonly T[], at: 0, more: true }));
  const found: T[] = [];
  while (found.length < size) {
    await Promise.all(
      open
        .filter(({ items, at, more }) => more && at === items.length)
        .map(async (list) => Object.assign(list, { ...(await list.read(list.items.at(-1), share)), at: 0 })),
    );
    let smallest: (typeof open)[number] | undefined;
    for (const list of open) {
      const item = list.items[list.at];
      if (item === undefined) continue;
      if (!smallest || compare(item, smallest.items[smallest.at] as T) < 0) smallest = list;
    }
    if (!smallest) break;
    found.push(smallest.items[smallest.at] as T);
    smallest.at += 1;
  }
  return found;
}
