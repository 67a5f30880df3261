import type { ConnectOptions } from '../../../core/dialect.ts';
import { SvcError } from '../../../core/errors.ts';
import { nearest } from '../../../core/nearest.ts';

/** One option of a dialect's connections. The reference documentation is generated from it. */
export interface Option<T> {
  readonly description: string;
  readonly defaultValue: T;
  /** Completes "must be …". */
  readonly expected: string;
  accepts(value: unknown): boolean;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

/** Passed to every dialect, whether it uses them or not. */
type CommonSettings = {
  readonly [name in 'root' | 'readOnly' | 'onWait' | 'onProgress' | 'signal']: ConnectOptions[name] | undefined;
};

/** The values of options, with their defaults. */
export type OptionValues<O extends Options> = {
  readonly [name in keyof O]: O[name] extends Option<infer T> ? T : never;
};

export type SettingsOf<O extends Options> = OptionValues<O> & CommonSettings;

/** The longest delay of a Node timer. A longer one fires after 1 millisecond. */
export const MAX_TIMER_MS = 2 ** 31 - 1;

export function integerOption<T extends number | undefined = number>(
  description: string,
  defaultValue: T,
  min: number,
  max: number,
): Option<T | number> {
  return {
    description,
    defaultValue,
    expected: `a whole number from ${min.toLocaleString('en-US')} to ${max.toLocaleString('en-US')}`,
    accepts: (value) => Number.isSafeInteger(value) && Number(value) >= min && Number(value) <= max,
  };
}

/** `min` is 1 where the engine or driver reads 0 as "no limit". */
export const millisecondsOption = (description: string, defaultValue: number, min = 1): Option<number> =>
  integerOption(description, defaultValue, min, MAX_TIMER_MS);

export const booleanOption = (description: string, defaultValue: boolean): Option<boolean> => ({
  description,
  defaultValue,
  expected: 'true or false',
  accepts: (value) => typeof value === 'boolean',
});

export const stringOption = (description: string): Option<string | undefined> => ({
  description,
  defaultValue: undefined,
  expected: 'a string',
  accepts: (value) => typeof value === 'string' && value !== '',
});

export const stringsOption = (description: string, example: string): Option<readonly string[] | undefined> => ({
  description,
  defaultValue: undefined,
  expected: `a list of one or more different names, such as ${example}`,
  accepts: (value) =>
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((one) => typeof one === 'string' && one !== '') &&
    new Set(value).size === value.length,
});

export const connectTimeoutMs = millisecondsOption('milliseconds before a connection attempt is abandoned', 10_000);

/** For dialects whose driver has no limit of its own. */
export const requestTimeoutMs = millisecondsOption(
  "milliseconds to wait for the response to a read or write of svc's own records; statements of migrations have no limit",
  30_000,
);

const isFunction = (value: unknown) => typeof value === 'function';

/** Options that callers pass to all dialects alike. */
const COMMON_OPTIONS: Readonly<Record<string, Pick<Option<unknown>, 'expected' | 'accepts'>>> = {
  allowCopy: booleanOption('', false),
  connectTimeoutMs,
  busyTimeoutMs: millisecondsOption('', 0, 0),
  root: stringOption(''),
  readOnly: booleanOption('', false),
  onWait: { expected: 'a function', accepts: isFunction },
  onProgress: { expected: 'a function', accepts: isFunction },
  signal: { expected: 'an AbortSignal', accepts: (value) => value instanceof AbortSignal },
};

/** No options of the dialect's own. */
export type NoOptions = Readonly<Record<never, never>>;

/** The options of a connection with defaults filled in. Throws `config_invalid`, which lists every problem. */
export function readSettings<O extends Options>(title: string, options: O, given: ConnectOptions): SettingsOf<O> {
  const known: typeof COMMON_OPTIONS = { ...COMMON_OPTIONS, ...options };
  const problems = Object.entries(given).flatMap(([name, value]) => {
    if (value === undefined) return [];
    const option = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!option) return [`There is no option ${JSON.stringify(name)}${suggestion(name, Object.keys(options))}`];
    return option.accepts(value) ? [] : [`${name} is ${valueText(value)} and must be ${option.expected}.`];
  });
  if (problems.length > 0) {
    throw new SvcError('config_invalid', `The options of a ${title} database are not valid.`, {
      why: problems.join(' '),
      next: ['Fix the options of the database in the configuration, or of the call.'],
    });
  }
  const { root, readOnly, onWait, onProgress, signal } = given;
  const values = Object.entries(options).map(([name, { defaultValue }]) => [name, given[name] ?? defaultValue]);
  return { ...(Object.fromEntries(values) as SettingsOf<O>), root, readOnly, onWait, onProgress, signal };
}

function suggestion(name: string, names: readonly string[]): string {
  if (name === 'schema' || name === 'schemas') return ': its URL specifies where tables live.';
  if (names.length === 0) return ': it has no options of its own.';
  const closest = nearest(name, names);
  return closest === undefined ? `; known options are ${names.join(', ')}.` : `; did you mean ${closest}?`;
}

function valueText(value: unknown): string {
  if (typeof value === 'string' || value === null || Array.isArray(value)) return JSON.stringify(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `of the type ${typeof value}`;
}
