/** The list, with what names a later one right after that one. */
export function inPlaces<T>(
  list: readonly T[],
  keyOf: (one: T) => string,
  nextTo: (one: T) => string | undefined,
): T[] {
  const keys = new Set(list.map(keyOf));
  const placed = new Map<string, T>();
  const waiting = new Map<string, T[]>();
  const put = (one: T): void => {
    const key = keyOf(one);
    if (placed.has(key)) return;
    placed.set(key, one);
    for (const other of waiting.get(key) ?? []) put(other);
  };
  for (const one of list) {
    const other = nextTo(one);
    if (other === undefined || !keys.has(other) || placed.has(other)) put(one);
    else waiting.set(other, [...(waiting.get(other) ?? []), one]);
  }
  // In a circle.
  for (const one of list) put(one);
  return [...placed.values()];
}
