/** The name closest to a mistyped one, if it is close enough to suggest. */
export function nearest(name: string, names: readonly string[]): string | undefined {
  let best: { name: string; edits: number } | undefined;
  for (const candidate of names) {
    const edits = distance(name.toLowerCase(), candidate.toLowerCase());
    if (edits <= Math.max(1, Math.floor(candidate.length / 3)) && (!best || edits < best.edits))
      best = { name: candidate, edits };
  }
  return best?.name;
}

/** Edits of one character, of which two swapped ones count as one. Row by row. */
function distance(a: string, b: string): number {
  let previous: number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitute = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const edits = Math.min(substitute, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1);
      const isSwap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      next.push(isSwap ? Math.min(edits, (previous[j - 2] ?? 0) + 1) : edits);
    }
    previous = row;
    row = next;
  }
  return row[b.length] ?? 0;
}
