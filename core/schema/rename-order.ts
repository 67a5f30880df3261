/**
 * Renames in an order in which each new name is free. A cycle (a to b, b to a) goes by way of a name that
 * nothing else has. `names` are all that are there before the first rename.
 */
export function orderedRenames(
  renames: Iterable<readonly [from: string, to: string]>,
  names: Iterable<string>,
): [from: string, to: string][] {
  const open = new Map([...renames].filter(([from, to]) => from !== to));
  const taken = new Set(names);
  const steps: [string, string][] = [];
  const move = (from: string, to: string) => {
    steps.push([from, to]);
    taken.delete(from);
    taken.add(to);
    open.delete(from);
  };
  while (open.size > 0) {
    const before = open.size;
    for (const [from, to] of open) if (!taken.has(to)) move(from, to);
    const [first] = open;
    if (open.size < before || !first) continue;
    const aside = freeName(taken, new Set(open.values()));
    move(first[0], aside);
    open.set(aside, first[1]);
  }
  return steps;
}

function freeName(...taken: readonly ReadonlySet<string>[]): string {
  for (let count = 1; ; count++) {
    const name = `svc_rename_${count}`;
    if (!taken.some((names) => names.has(name))) return name;
  }
}
