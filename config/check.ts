import { SvcError } from '../core/errors.ts';
import { isPlainObject } from '../core/json.ts';
import { nearest } from '../core/nearest.ts';
import { addressProblem } from '../core/url.ts';
import type { Config } from './define.ts';

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$/;

type Check = (value: unknown, path: string, problems: string[]) => void;

/** The config as it was checked. Throws `config_invalid` with every problem and its path; values are never quoted. */
export function checkConfig(value: unknown, where?: string): Config {
  const problems: string[] = [];
  config(value, '', problems);
  const [first, ...more] = problems;
  if (first === undefined) return value as Config;
  throw new SvcError('config_invalid', 'The configuration cannot be used.', {
    why: [first, ...more].join(' '),
    next: ['Mend the configuration.'],
    ...(where !== undefined && { where }),
    details: { problems },
  });
}

const text: Check = (value, path, problems) => {
  if (typeof value !== 'string' || value === '') problems.push(`${path}: must be a string, and is ${kind(value)}.`);
};
const textOrNothing: Check = (value, path, problems) => {
  if (value !== undefined) text(value, path, problems);
};
const flag: Check = (value, path, problems) => {
  if (typeof value !== 'boolean') problems.push(`${path}: must be true or false, and is ${kind(value)}.`);
};
const name: Check = (value, path, problems) => {
  if (typeof value !== 'string' || !NAME.test(value)) problems.push(`${path}: must be a name of A-Z a-z 0-9 _ . -`);
};
const anything: Check = () => {};

const url: Check = (value, path, problems) => {
  if (value === undefined) return;
  if (isPlainObject(value)) map(textOrNothing)(value, path, problems);
  else if (typeof value !== 'string' || value === '') {
    problems.push(`${path}: must be a URL or a URL per environment, and is ${kind(value)}.`);
  }
};

const plugins: Check = (value, path, problems) => {
  if (!Array.isArray(value)) {
    problems.push(`${path}: must be an array, and is ${kind(value)}.`);
    return;
  }
  for (const [index, plugin] of value.entries()) {
    if ((typeof plugin === 'string' && plugin !== '') || isPlainObject(plugin)) continue;
    problems.push(`${path}[${index}]: must be a plugin, a package name or a path, and is ${kind(plugin)}.`);
  }
};

const secrets: Check = (value, path, problems) => {
  if (!Array.isArray(value)) problems.push(`${path}: must be an array of secrets, and is ${kind(value)}.`);
  else for (const [index, secret] of value.entries()) textOrNothing(secret, `${path}[${index}]`, problems);
};

const channels: Check = (value, path, problems) => {
  map(object({ type: text }, ['type'], 'open'))(value, path, problems);
  for (const [key, option] of [
    ['webhook', 'approvalWebhook'],
    ['broker', 'approvalBroker'],
  ] as const) {
    if (isPlainObject(value) && Object.hasOwn(value, key)) {
      problems.push(`${join(path, key)}: needs another name: the audit knows the way of ${option} by it.`);
    }
  }
};

/** `/approvals/<requestId>/respond?token=…` is put behind it. */
const callbackBase: Check = (value, path, problems) => {
  if (typeof value !== 'string' || value === '') return textOrNothing(value, path, problems);
  const why =
    addressProblem(value) ?? (/[?#]/.test(value) ? 'has a query or a fragment: a path follows it' : undefined);
  if (why) problems.push(`${path}: ${why}.`);
};

const config = object(
  {
    $schema: text,
    product: name,
    env: name,
    databases: map(
      object({ dialect: text, url, schema: textOrNothing, options: map(anything, 'any key') }, ['dialect', 'url']),
    ),
    environments: map(object({ protected: flag })),
    brokers: map(object({ type: text, url: textOrNothing }, ['type'], 'open')),
    approvals: object({
      store: object({ database: text }, ['database']),
      callbackBase,
      callbackKey: textOrNothing,
      channels,
      decisions: object({ broker: text }, ['broker']),
      webhook: object({ context: flag, secrets: map(secrets, 'any key') }),
    }),
    plugins,
  },
  [],
);

function object(members: Readonly<Record<string, Check>>, needed: readonly string[] = [], rest?: 'open'): Check {
  return (value, path, problems) => {
    if (!isPlainObject(value)) {
      problems.push(`${path || 'The configuration'}: must be an object, and is ${kind(value)}.`);
      return;
    }
    for (const key of needed) {
      if (!(key in value)) problems.push(`${join(path, key)}: is missing.`);
    }
    for (const [key, member] of Object.entries(value)) {
      const check = Object.hasOwn(members, key) ? members[key] : undefined;
      if (check) {
        if (member !== undefined || needed.includes(key)) check(member, join(path, key), problems);
      } else if (rest === undefined) {
        const near = nearest(key, Object.keys(members));
        problems.push(`${join(path, key)}: is not known.${near ? ` Did you mean "${near}"?` : ''}`);
      }
    }
  };
}

function map(check: Check, keys: 'names' | 'any key' = 'names'): Check {
  return (value, path, problems) => {
    if (!isPlainObject(value)) {
      problems.push(`${path}: must be an object, and is ${kind(value)}.`);
      return;
    }
    for (const [key, member] of Object.entries(value)) {
      if (keys === 'names' && !NAME.test(key)) problems.push(`${join(path, key)}: must be a name of A-Z a-z 0-9 _ . -`);
      check(member, join(path, key), problems);
    }
  };
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** What a value is, without saying it: it may be a secret. */
function kind(value: unknown): string {
  if (value === '') return 'an empty string';
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
