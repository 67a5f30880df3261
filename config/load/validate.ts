import { isIP } from 'node:net';
import { SvcError } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import { LINT_LEVELS } from '../../core/lint/rule.ts';
import { APPROVAL_CONDITIONS } from '../../core/migration/plan-approver.ts';
import { nearest } from '../../core/nearest.ts';
import { addressProblem } from '../../core/url.ts';
import { pathText } from '../../core/validate-shape.ts';
import type { Config, TokenAlgorithm } from '../define.ts';
import { compileRules, parseDuration, roleProblems } from './approval-rules.ts';
import { isApprovalCondition, planApprovalProblems } from './plan-approval.ts';

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$/;

type Validator = (value: unknown, path: string, problems: string[]) => void;

/** Throws `config_invalid` with every problem and its path. Values are never quoted, because they may be secrets. */
export function assertConfig(value: unknown, where?: string): Config {
  const problems: string[] = [];
  config(value, '', problems);
  if (problems.length === 0) {
    const { problems: found } = compileRules((value as Config).approvals ?? {});
    problems.push(...found.map(({ path, text }) => `${pathText(['approvals', ...path])}: ${text}.`));
    problems.push(...planApprovalProblems(value as Config), ...serverProblems(value as Config));
  }
  const [first, ...more] = problems;
  if (first === undefined) return value as Config;
  throw new SvcError('config_invalid', 'The configuration is not valid.', {
    why: [first, ...more].join(' '),
    next: ['Fix the settings named above.'],
    ...(where !== undefined && { where }),
    details: { problems },
  });
}

function serverProblems({ approvals: { server, roles } = {} }: Config): string[] {
  return server ? roleProblems(roles, server.role).map((text) => `approvals.server.role: ${text}.`) : [];
}

const text: Validator = (value, path, problems) => {
  if (typeof value !== 'string' || value === '')
    problems.push(`${path}: must be a string, not ${describeKind(value)}.`);
};
const optionalText: Validator = (value, path, problems) => {
  if (value !== undefined) text(value, path, problems);
};
const flag: Validator = (value, path, problems) => {
  if (typeof value !== 'boolean') problems.push(`${path}: must be true or false, not ${describeKind(value)}.`);
};
const name: Validator = (value, path, problems) => {
  if (typeof value !== 'string' || !NAME.test(value))
    problems.push(`${path}: must be a name with only A-Z a-z 0-9 _ . -`);
};
const anything: Validator = () => {};

const url: Validator = (value, path, problems) => {
  if (value === undefined) return;
  if (isPlainObject(value)) map(optionalText)(value, path, problems);
  else if (typeof value !== 'string' || value === '') {
    problems.push(`${path}: must be a URL or a URL per environment, not ${describeKind(value)}.`);
  }
};

const plugins: Validator = (value, path, problems) => {
  if (!Array.isArray(value)) {
    problems.push(`${path}: must be an array, not ${describeKind(value)}.`);
    return;
  }
  for (const [index, plugin] of value.entries()) {
    if ((typeof plugin === 'string' && plugin !== '') || isPlainObject(plugin)) continue;
    problems.push(`${path}[${index}]: must be a plugin, a package name or a path, not ${describeKind(plugin)}.`);
  }
};

const optionalTexts: Validator = (value, path, problems) => {
  if (value === undefined) return;
  if (!Array.isArray(value)) problems.push(`${path}: must be an array of strings, not ${describeKind(value)}.`);
  else for (const [index, one] of value.entries()) text(one, `${path}[${index}]`, problems);
};

const secrets: Validator = (value, path, problems) => {
  if (!Array.isArray(value)) problems.push(`${path}: must be an array of secrets, not ${describeKind(value)}.`);
  else for (const [index, secret] of value.entries()) optionalText(secret, `${path}[${index}]`, problems);
};

const channels: Validator = (value, path, problems) => {
  map(object({ type: text }, ['type'], 'open'))(value, path, problems);
  for (const [key, option] of [
    ['webhook', 'approvalWebhook'],
    ['broker', 'approvalBroker'],
  ] as const) {
    if (isPlainObject(value) && Object.hasOwn(value, key)) {
      problems.push(`${join(path, key)}: must have another name, because the audit uses this one for ${option}.`);
    }
  }
};

const lintLevels: Validator = map((value, path, problems) => {
  if (typeof value !== 'string' || ![...LINT_LEVELS, 'off'].includes(value))
    problems.push(`${path}: must be ${LINT_LEVELS.map((level) => `"${level}"`).join(', ')} or "off".`);
});

const approvalCondition: Validator = (value, path, problems) => {
  if (value !== undefined && !isApprovalCondition(value))
    problems.push(`${path}: must be ${APPROVAL_CONDITIONS.map((one) => `"${one}"`).join(', ')}.`);
};

/** The callback appends `/approvals/<requestId>/respond?token=…`. */
const callbackBase: Validator = (value, path, problems) => {
  if (typeof value !== 'string' || value === '') return optionalText(value, path, problems);
  const why =
    addressProblem(value) ??
    (/[?#]/.test(value) ? 'must not have a query or a fragment, because a path is appended' : undefined);
  if (why) problems.push(`${path}: ${why}.`);
};

/** Authorization is where the tokens of people are. */
const header: Validator = (value, path, problems) => {
  if (typeof value === 'string' && /^[a-z0-9-]+$/i.test(value) && !/^(authorization|cookie)$/i.test(value)) return;
  problems.push(`${path}: must be the name of a header other than authorization and cookie.`);
};

const address: Validator = (value, path, problems) => {
  const why = typeof value === 'string' ? addressProblem(value) : 'is not a URL';
  if (why) problems.push(`${path}: ${why}.`);
};

const audience: Validator = (value, path, problems) => {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (all.length === 0) problems.push(`${path}: is empty.`);
  for (const one of all) text(one, path, problems);
};

const ALGORITHMS: Readonly<Record<TokenAlgorithm, true>> = {
  RS256: true,
  RS384: true,
  RS512: true,
  PS256: true,
  PS384: true,
  PS512: true,
  ES256: true,
  ES384: true,
  ES512: true,
  EdDSA: true,
};

const algorithms: Validator = (value, path, problems) => {
  const isListed = (one: unknown) => typeof one === 'string' && Object.hasOwn(ALGORITHMS, one);
  if (Array.isArray(value) && value.length > 0 && value.every(isListed)) return;
  problems.push(`${path}: must be some of ${Object.keys(ALGORITHMS).join(', ')}.`);
};

const proxySecret: Validator = (value, path, problems) => {
  if (typeof value !== 'string' || value.length < 32) problems.push(`${path}: must have at least 32 characters.`);
};

const peers: Validator = (value, path, problems) => {
  if (Array.isArray(value) && value.length > 0 && value.every(isPeer)) return;
  problems.push(`${path}: must be addresses or ranges, such as 10.0.0.7 or 10.1.0.0/16.`);
};

function isPeer(value: unknown): boolean {
  const [, address = '', prefix = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(String(value)) ?? [];
  const family = isIP(address);
  return family !== 0 && Number(prefix) <= (family === 4 ? 32 : 128);
}

const SIGNED = ['header', 'jwks', 'issuer', 'audience', 'algorithms'];
const signedProxy = object(
  { header, jwks: address, issuer: text, audience, algorithms, id: text, groups: text },
  SIGNED,
);
const plainProxy = object(
  { header, groupsHeader: header, secret: object({ header, value: proxySecret }, ['header', 'value']), peers },
  ['header', 'secret', 'peers'],
);

const proxy: Validator = (value, path, problems) => {
  const isPlain = isPlainObject(value) && ('peers' in value || 'secret' in value);
  (isPlain ? plainProxy : signedProxy)(value, path, problems);
};

/** Its metadata are at a path that is appended. */
const issuer: Validator = (value, path, problems) => {
  address(value, path, problems);
  if (typeof value === 'string' && /[?#]/.test(value)) problems.push(`${path}: must not have a query or a fragment.`);
};

const scopes: Validator = (value, path, problems) => {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string' && /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(one)))
    return;
  problems.push(`${path}: must be an array of scopes, each without spaces.`);
};

const oidc = object(
  {
    issuer,
    clientId: text,
    clientSecret: optionalText,
    id: text,
    groups: text,
    algorithms,
    scopes,
    cliClientId: text,
    audience,
  },
  ['issuer', 'clientId'],
);

const MAX_INTERVAL_MS = 86_400_000;

const every: Validator = (value, path, problems) => {
  const ms = typeof value === 'string' ? parseDuration(value) : undefined;
  if (ms === undefined || ms > MAX_INTERVAL_MS)
    problems.push(`${path}: is not a duration from 1s to 1d, such as 5m or 1h.`);
};

const keptTime: Validator = (value, path, problems) => {
  if (typeof value !== 'string' || !/[hdw]$/.test(value) || parseDuration(value) === undefined)
    problems.push(`${path}: is not a duration from 1h to 52w, such as 12h, 30d or 4w.`);
};

const publicKeys: Validator = (value, path, problems) => {
  if (!Array.isArray(value)) problems.push(`${path}: must be an array of keys, not ${describeKind(value)}.`);
  else for (const [index, key] of value.entries()) text(key, `${path}[${index}]`, problems);
};

const sinks: Validator = (value, path, problems) => {
  map(object({ type: text }, ['type'], 'open'))(value, path, problems);
  if (isPlainObject(value) && Object.keys(value).length === 0)
    problems.push(
      `${path}: must have a sink, because a person who can write to the store could remove its last seals.`,
    );
};

const seals = object({ key: optionalText, publicKeys, every, sinks }, ['sinks']);

const config = object(
  {
    $schema: text,
    product: name,
    env: name,
    databases: map(
      object(
        {
          dialect: text,
          url,
          schema: optionalText,
          schemas: optionalTexts,
          keep: keptTime,
          options: map(anything, 'any key'),
        },
        ['dialect', 'url'],
      ),
    ),
    environments: map(
      object({
        protected: flag,
        local: flag,
        lint: lintLevels,
        approval: object({ when: approvalCondition, role: text, timeout: optionalText }, ['role']),
      }),
    ),
    lint: lintLevels,
    brokers: map(object({ type: text, url: optionalText }, ['type'], 'open')),
    approvals: object({
      store: object({ database: text }, ['database']),
      callbackBase,
      callbackKey: optionalText,
      channels,
      decisions: object({ broker: text }, ['broker']),
      webhook: object({ context: flag, secrets: map(secrets, 'any key') }),
      proxy,
      oidc,
      server: object({ role: text, environments: map(callbackBase) }, ['role']),
      seals,
      // What they contain is checked together: rules name roles.
      roles: anything,
      rules: anything,
    }),
    plugins,
  },
  [],
);

function object(
  members: Readonly<Record<string, Validator>>,
  required: readonly string[] = [],
  rest?: 'open',
): Validator {
  return (value, path, problems) => {
    if (!isPlainObject(value)) {
      problems.push(`${path || 'The configuration'}: must be an object, not ${describeKind(value)}.`);
      return;
    }
    for (const key of required) {
      if (!(key in value)) problems.push(`${join(path, key)}: is missing.`);
    }
    for (const [key, member] of Object.entries(value)) {
      const check = Object.hasOwn(members, key) ? members[key] : undefined;
      if (check) {
        if (member !== undefined || required.includes(key)) check(member, join(path, key), problems);
      } else if (rest === undefined) {
        const near = nearest(key, Object.keys(members));
        problems.push(`${join(path, key)}: is not a known setting.${near ? ` Did you mean "${near}"?` : ''}`);
      }
    }
  };
}

function map(check: Validator, keys: 'names' | 'any key' = 'names'): Validator {
  return (value, path, problems) => {
    if (!isPlainObject(value)) {
      problems.push(`${path}: must be an object, not ${describeKind(value)}.`);
      return;
    }
    for (const [key, member] of Object.entries(value)) {
      if (keys === 'names' && !NAME.test(key))
        problems.push(`${join(path, key)}: must be a name with only A-Z a-z 0-9 _ . -`);
      check(member, join(path, key), problems);
    }
  };
}

function join(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** Describes the type of a value, never the value: it may be a secret. */
function describeKind(value: unknown): string {
  if (value === '') return 'an empty string';
  if (value === null || value === undefined) return String(value);
  if (Array.isArray(value)) return 'an array';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}
