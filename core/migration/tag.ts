import { SvcError } from '../errors.ts';

const TAG = /^(?!\.)[A-Za-z0-9_.-]{1,128}$/;
const STAMPED = /^\d{8}_\d{6}_(.+)$/;

/** `<YYYYMMDD>_<HHMMSS>_<name>`, in UTC; what a tag cannot hold becomes `_`. */
export function generateTag(name: string, at: Date = new Date()): string {
  const given: unknown = name;
  if (typeof given !== 'string') {
    throw new SvcError('tag_invalid', 'A tag is made from a name, which is a string.', {
      next: ["MigrationHelpers.generateTag('add_orders')"],
    });
  }
  const stamp = at.toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15);
  const kept = name.replace(/[^A-Za-z0-9_-]+/g, '_') || '_';
  return `${stamp}_${kept}`.slice(0, 128);
}

let latest = 0;

/**
 * A tag of this moment. Two that one process makes never share a second, in which their names would decide which of
 * them runs first: the seconds move on.
 */
export function nowTag(name: string): string {
  const at = Math.max(Date.now(), latest + 1000);
  const tag = generateTag(name, new Date(at));
  latest = at;
  return tag;
}

export function isTag(tag: unknown): tag is string {
  return typeof tag === 'string' && TAG.test(tag);
}

/** The part of a tag after the time. */
export function nameOfTag(tag: string): string {
  return STAMPED.exec(tag)?.[1] ?? tag;
}

/** A tag of that name which is not taken and sorts behind `last`, made in this or the last moments: the seconds move on. */
export function freeTag(name: string, at: Date, taken: (tag: string) => boolean, last = ''): string {
  for (let time = at.getTime(); ; time += 1000) {
    const tag = generateTag(name, new Date(time));
    const behind = tag > last || last > generateTag('', new Date(time + LONGEST_LEAD_MS));
    if (behind && !taken(tag)) return tag;
  }
}

/** A tag further ahead of the clock was not made by it, and is not waited for. */
const LONGEST_LEAD_MS = 3_600_000;
