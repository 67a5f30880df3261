/** A character that JavaScript, which compares UTF-16, sorts before others that UTF-8 sorts before it. */
const SURROGATE = /[\ud800-\udfff]/;
/** Sorts after every key. */
const LAST = '\u{10ffff}';

/** A value that orders a page, and the key that breaks ties. */
export type Position = readonly [sort: string | number | boolean | null, key: string];

/** Positions in order. Appending is cheap, and most new records come last. */
export class SortedIndex {
  readonly #positions: Position[] = [];

  get size(): number {
    return this.#positions.length;
  }

  add(position: Position): void {
    const last = this.#positions.at(-1);
    if (!last || compare(last, position) < 0) this.#positions.push(position);
    else this.#positions.splice(this.#search(position), 0, position);
  }

  delete(position: Position): void {
    const at = this.#search(position);
    const found = this.#positions[at];
    if (found && compare(found, position) === 0) this.#positions.splice(at, 1);
  }

  /** Positions between the bounds and after `after`, in the direction of the range. */
  *range({ from, to, after, descending }: Range): Generator<Position> {
    const positions = this.#positions;
    if (!descending) {
      const first = after ? this.#search(after, 1) : from === undefined ? 0 : this.#search([from, '']);
      for (let at = first; at < positions.length; at++) {
        const position = positions[at] as Position;
        if (to !== undefined && order(position[0], to) > 0) return;
        yield position;
      }
      return;
    }
    const last = after ? this.#search(after) : to === undefined ? positions.length : this.#search([to, LAST], 1);
    for (let at = last - 1; at >= 0; at--) {
      const position = positions[at] as Position;
      if (from !== undefined && order(position[0], from) < 0) return;
      yield position;
    }
  }

  /** Index of the first position not before `position`; with `skipEqual`, of the first one after it. */
  #search(position: Position, skipEqual: 0 | 1 = 0): number {
    let low = 0;
    let high = this.#positions.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(this.#positions[middle] as Position, position) < skipEqual) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

interface Range {
  readonly from?: Position[0] | undefined;
  readonly to?: Position[0] | undefined;
  readonly after?: Position | undefined;
  readonly descending: boolean;
}

function compare([a, key]: Position, [b, other]: Position): number {
  return order(a, b) || order(key, other);
}

function order(a: Position[0], b: Position[0]): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  if (typeof a === 'string' && typeof b === 'string' && (SURROGATE.test(a) || SURROGATE.test(b)))
    return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : 1;
}
