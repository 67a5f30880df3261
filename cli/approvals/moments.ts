import { SvcError } from '../../core/errors.ts';

const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** A date or an ISO moment, out of a flag. */
export function momentOf(flag: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const moment = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(moment.getTime())) return moment;
  throw new SvcError('usage', `${flag} takes a date as 2026-11-20 or 2026-11-20T10:30Z, not "${text}".`);
}

/** Milliseconds, out of a flag that takes `12h`, `90d` or `4w`. */
export function durationOf(flag: string, text: string): number {
  const [, count, unit] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const size = unit === undefined ? undefined : UNITS[unit];
  if (count !== undefined && size !== undefined) return Number(count) * size;
  throw new SvcError('usage', `${flag} takes a time as 12h, 90d or 4w, not "${text}".`, {
    state: 'Nothing was removed.',
  });
}
