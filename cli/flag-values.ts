import { SvcError } from '../core/errors.ts';

/** Parses a whole number of at least 1. Throws `usage`. */
export function parseCount(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw usageError(flag, text, 'a whole number of at least 1');
}

/** Parses seconds; returns milliseconds. Throws `usage`. */
export function parseSeconds(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,6}(\.\d{1,3})?$/.test(text)) return Math.round(Number(text) * 1000);
  throw usageError(flag, text, 'a number of seconds');
}

function usageError(flag: string, text: string, what: string): SvcError {
  return new SvcError('usage', `${flag} must be ${what}, not "${text}".`, { state: 'Nothing was changed.' });
}

const UNITS: Readonly<Record<string, number>> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses a date or an ISO 8601 date and time. Throws `usage`. */
export function parseDate(flag: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined;
  const date = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(date.getTime())) return date;
  throw new SvcError('usage', `${flag} must be a date such as 2026-11-20 or 2026-11-20T10:30Z, not "${text}".`);
}

/** Parses `12h`, `90d` or `4w`; returns milliseconds. `unchanged` is the state if it throws `usage`. */
export function parseAge(flag: string, text: string, unchanged = 'Nothing was removed.'): number {
  const [, count, unit] = /^(\d{1,5})([hdw])$/.exec(text) ?? [];
  const size = unit === undefined ? undefined : UNITS[unit];
  if (count !== undefined && size !== undefined) return Number(count) * size;
  throw new SvcError('usage', `${flag} must be a duration such as 12h, 90d or 4w, not "${text}".`, {
    state: unchanged,
  });
}

const WAIT_UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Parses `30s`, `30m`, `8h` or `2d`; returns milliseconds. Throws `usage`. */
export function parseWait(flag: string, text: string): number {
  const [, count, unit = ''] = /^(\d{1,5})([smhd])$/.exec(text) ?? [];
  const size = WAIT_UNITS[unit];
  if (count !== undefined && size !== undefined) return Number(count) * size;
  throw usageError(flag, text, 'a duration such as 30s, 30m, 8h or 2d');
}
