/** A value that orders a page, and the key that breaks ties. */
export type Place = readonly [sort: string | number | boolean | null, key: string];

/** Places in order. New ones mostly come last, where adding one costs nothing. */
export class Ordered {
  readonly #places: Place[] = [];

  get size(): number {
    return this.#places.length;
  }

  add(place: Place): void {
    const last = this.#places.at(-1);
    if (!last || compare(last, place) < 0) this.#places.push(place);
    else this.#places.splice(this.#from(place), 0, place);
  }

  delete(place: Place): void {
    const at = this.#from(place);
    const found = this.#places[at];
    if (found && compare(found, place) === 0) this.#places.splice(at, 1);
  }

  /** Keys after `after` and between both bounds, in that direction. */
  *keys({ from, to, after, down }: Range): Generator<Place> {
    const places = this.#places;
    if (!down) {
      const first = after ? this.#from(after, 1) : from === undefined ? 0 : this.#from([from, '']);
      for (let at = first; at < places.length; at++) {
        const place = places[at] as Place;
        if (to !== undefined && order(place[0], to) > 0) return;
        yield place;
      }
      return;
    }
    const last = after ? this.#from(after) : to === undefined ? places.length : this.#from([to, '\uffff'], 1);
    for (let at = last - 1; at >= 0; at--) {
      const place = places[at] as Place;
      if (from !== undefined && order(place[0], from) < 0) return;
      yield place;
    }
  }

  /** Index of the first place that is not before `place`; with 1, of the first behind it. */
  #from(place: Place, behind: 0 | 1 = 0): number {
    let low = 0;
    let high = this.#places.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compare(this.#places[middle] as Place, place) < behind) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

export interface Range {
  readonly from?: Place[0] | undefined;
  readonly to?: Place[0] | undefined;
  readonly after?: Place | undefined;
  readonly down: boolean;
}

function compare([a, key]: Place, [b, other]: Place): number {
  return order(a, b) || order(key, other);
}

function order(a: Place[0], b: Place[0]): number {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return a < b ? -1 : 1;
}
