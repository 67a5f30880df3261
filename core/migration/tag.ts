import { SvcError } from '../errors.ts';
import { processWide } from '../process-wide.ts';

export const TAG = /^(?!\.)[A-Za-z0-9_.-]{1,128}$/;
const TIMESTAMPED = /^\d{8}_\d{6}_(.+)$/;

/** Returns `<YYYYMMDD>_<HHMMSS>_<name>` in UTC; characters that a tag cannot contain become `_`. */
export function generateTag(name: string, at: Date = new Date()): string {
  const given: unknown = name;
  if (typeof given !== 'string') {
    throw new SvcError('tag_invalid', 'The name of a tag must be a string.', {
      next: ["MigrationHelpers.generateTag('add_orders')"],
    });
  }
  const timestamp = at.toISOString().replace(/[-:]/g, '').replace('T', '_').slice(0, 15);
  const sanitized = name.replace(/[^A-Za-z0-9_-]+/g, '_') || '_';
  return `${timestamp}_${sanitized}`.slice(0, 128);
}

const latest = processWide('latest-tag', () => ({ time: 0 }));

/**
 * Returns a tag of the current time. Two tags of one process never share a second: otherwise their names would
 * determine the order of the migrations.
 */
export function generateUniqueTag(name: string): string {
  const time = Math.max(Date.now(), latest.time + 1000);
  const tag = generateTag(name, new Date(time));
  latest.time = time;
  return tag;
}

export function isTag(tag: unknown): tag is string {
  return typeof tag === 'string' && TAG.test(tag);
}

/** The part of a tag after the time. */
export function nameOfTag(tag: string): string {
  return TIMESTAMPED.exec(tag)?.[1] ?? tag;
}

/** Returns the first free tag from this time on that sorts after `last`, unless `last` is far in the future. */
export function availableTag(name: string, at: Date, isTaken: (tag: string) => boolean, last = ''): string {
  for (let time = at.getTime(); ; time += 1000) {
    const tag = generateTag(name, new Date(time));
    const isAfterLast = tag > last || last > generateTag('', new Date(time + MAX_CLOCK_LEAD_MS));
    if (isAfterLast && !isTaken(tag)) return tag;
  }
}

/** A tag further ahead of the clock was written by hand and is ignored. */
const MAX_CLOCK_LEAD_MS = 3_600_000;
