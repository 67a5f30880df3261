import { SvcError } from '../../core/errors.ts';

/** A whole number from 1 on, out of a flag. */
export function countOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw usage(flag, text, 'a whole number from 1 on');
}

/** Milliseconds, out of a flag that takes seconds. */
export function secondsOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d{1,6}(\.\d{1,3})?$/.test(text)) return Math.round(Number(text) * 1000);
  throw usage(flag, text, 'seconds');
}

function usage(flag: string, text: string, what: string): SvcError {
  return new SvcError('usage', `${flag} takes ${what}, not "${text}".`, { state: 'Nothing was changed.' });
}
