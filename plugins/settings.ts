import type { ConnectOptions } from '../core/dialect.ts';
import { SvcError } from '../core/errors.ts';
import { nearest } from '../core/nearest.ts';

/** A value that a connection can be given, what it is without one, and what the page of its dialect says of it. */
export interface Option<T> {
  readonly tells: string;
  readonly otherwise: T;
  /** Continues "it has to be". */
  readonly wanted: string;
  fits(value: unknown): boolean;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

/** What every dialect is given, whether it has a use for it or not. */
type Beside = { readonly [name in 'root' | 'onWait' | 'onProgress' | 'signal']: ConnectOptions[name] | undefined };

export type SettingsOf<O extends Options> = {
  readonly [name in keyof O]: O[name] extends Option<infer T> ? T : never;
} & Beside;

/** Node's timers hold no longer time: they take one for a millisecond. */
export const LONGEST_MS = 2 ** 31 - 1;

export function whole<T extends number | undefined = number>(
  tells: string,
  otherwise: T,
  from: number,
  to: number,
): Option<T | number> {
  return {
    tells,
    otherwise,
    wanted: `a whole number from ${from.toLocaleString('en-US')} to ${to.toLocaleString('en-US')}`,
    fits: (value) => Number.isSafeInteger(value) && Number(value) >= from && Number(value) <= to,
  };
}

/** From 1 on where 0 would mean for ever. */
export const milliseconds = (tells: string, otherwise: number, from = 1): Option<number> =>
  whole(tells, otherwise, from, LONGEST_MS);

export const yesOrNo = (tells: string, otherwise: boolean): Option<boolean> => ({
  tells,
  otherwise,
  wanted: 'true or false',
  fits: (value) => typeof value === 'boolean',
});

export const text = (tells: string): Option<string | undefined> => ({
  tells,
  otherwise: undefined,
  wanted: 'a text',
  fits: (value) => typeof value === 'string' && value !== '',
});

export const connectTimeoutMs = milliseconds('milliseconds until an attempt to connect is given up', 10_000);

const isFunction = (value: unknown) => typeof value === 'function';

/** What whoever connects gives to all dialects alike, and what it has to be. */
const SHARED: Readonly<Record<string, Pick<Option<unknown>, 'wanted' | 'fits'>>> = {
  allowCopy: yesOrNo('', false),
  busyTimeoutMs: milliseconds('', 0, 0),
  root: text(''),
  onWait: { wanted: 'a function', fits: isFunction },
  onProgress: { wanted: 'a function', fits: isFunction },
  signal: { wanted: 'an AbortSignal', fits: (value) => value instanceof AbortSignal },
};

/** What a connection is given, checked, with what it is not given. Throws `config_invalid` with all that is wrong. */
export function readSettings<O extends Options>(title: string, options: O, given: ConnectOptions): SettingsOf<O> {
  const known: typeof SHARED = { ...SHARED, ...options };
  const problems = Object.entries(given).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const option = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!option) return [`It has no option ${JSON.stringify(name)}${meant(name, Object.keys(options))}.`];
    return option.fits(value) ? [] : [`${name} is ${told(value)} and has to be ${option.wanted}.`];
  });
  if (problems.length > 0) {
    throw new SvcError('config_invalid', `The options of a ${title} database cannot be used.`, {
      why: problems.join(' '),
      next: ['Mend the options of the database in the configuration, or of the call.'],
    });
  }
  const { root, onWait, onProgress, signal } = given;
  const values = Object.entries(options).map(([name, { otherwise }]) => [name, given[name] ?? otherwise]);
  return { ...(Object.fromEntries(values) as SettingsOf<O>), root, onWait, onProgress, signal };
}

function meant(name: string, names: readonly string[]): string {
  if (name === 'schema') return ': its URL says where tables live';
  const near = nearest(name, names);
  return near === undefined ? `; they are ${names.join(', ')}` : `; ${near} is meant`;
}

function told(value: unknown): string {
  if (typeof value === 'string' || value === null) return JSON.stringify(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `of the type ${typeof value}`;
}
