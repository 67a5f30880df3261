import { readFileSync } from 'node:fs';
import { join, posix, sep } from 'node:path';
import { SvcError, systemErrorCode } from '../../core/errors.ts';
import { isPlainObject } from '../../core/json.ts';
import type { Config, DatabaseConfig } from '../define.ts';
import { isAbsent, pathProblem } from './path-problem.ts';

/** An environment and its source. */
export interface ChosenEnv {
  readonly env: string;
  readonly from: 'argument' | 'link' | 'SVC_ENV' | 'config';
}

/**
 * The environment set outside the configuration: by the argument, otherwise the link, otherwise SVC_ENV. Throws
 * `env_conflict` if the link and SVC_ENV differ and there is no argument.
 */
export function externalEnv(argument: string | undefined, link: Link | undefined): ChosenEnv | undefined {
  if (argument !== undefined) return { env: argument, from: 'argument' };
  const linked = link?.env;
  const variable = process.env.SVC_ENV || undefined;
  if (linked !== undefined && variable !== undefined && linked !== variable) {
    throw new SvcError('env_conflict', `The link sets "${linked}" and SVC_ENV sets "${variable}".`, {
      why: 'svc does not guess which database to use.',
      next: [`Use --env ${linked} or --env ${variable}.`, 'Unset SVC_ENV.', `svc link --env ${variable}`],
      where: LINK_FILE,
    });
  }
  if (linked !== undefined) return { env: linked, from: 'link' };
  return variable === undefined ? undefined : { env: variable, from: 'SVC_ENV' };
}

/** Falls back to the configuration's own env. Throws `config_invalid` if no environment is set. */
export function chooseEnv(external: ChosenEnv | undefined, config: Config, where?: string): ChosenEnv {
  if (external) return external;
  if (config.env !== undefined) return { env: config.env, from: 'config' };
  const [env = 'dev'] = configuredEnvs(config);
  throw new SvcError('config_invalid', 'No environment is set.', {
    why: 'Neither --env, the link, SVC_ENV nor "env" in the configuration is set.',
    // A configuration in code has no link.
    next: [...(where === undefined ? [] : [`svc link --env ${env}`]), `Add env: '${env}' to the configuration.`],
    ...(where !== undefined && { where }),
  });
}

/** All environments in a configuration, its own first. */
export function configuredEnvs({ env, databases = {}, environments: settings = {} }: Config): string[] {
  const names = new Set(env === undefined ? [] : [env]);
  for (const { url } of Object.values(databases)) {
    if (typeof url === 'object') for (const name of Object.keys(url)) names.add(name);
  }
  for (const name of Object.keys(settings)) names.add(name);
  return [...names];
}

export const LINK_FILE = 'svc/config.json';

/** Links a folder to an environment. */
export interface Link {
  readonly product?: string;
  readonly env?: string;
}

/** Reads the link next to a configuration, if there is one. Throws `file_invalid`. */
export function readLink(root: string): Link | undefined {
  const file = join(root, LINK_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isAbsent(file, error)) return undefined;
    const message = error instanceof Error ? error.message : String(error);
    throw invalidLinkError(file, pathProblem(file, systemErrorCode(error))?.why ?? message);
  }
  let link: unknown;
  try {
    link = JSON.parse(text);
  } catch (error) {
    throw invalidLinkError(file, error instanceof Error ? error.message : String(error));
  }
  if (!isPlainObject(link)) throw invalidLinkError(file, 'It is not an object.');
  for (const key of ['product', 'env'] as const) {
    const value = link[key];
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw invalidLinkError(file, `"${key}" is not a string.`);
  }
  const unknown = Object.keys(link).find((key) => key !== 'product' && key !== 'env');
  // A mistyped "env" would leave the environment to the configuration.
  if (unknown !== undefined) throw invalidLinkError(file, `"${unknown}" is not known; it has "product" and "env".`);
  return link;
}

function invalidLinkError(file: string, why: string): SvcError {
  return new SvcError('file_invalid', 'The link to an environment cannot be read.', {
    why,
    next: ['Delete it, then: svc link --env <env>'],
    where: file,
  });
}

/** Returns the URL of a database in an environment. Throws `env_unknown` if it has none. */
export function databaseUrl(config: Config, tag: string, database: DatabaseConfig, env: string, root: string): string {
  const { url } = database;
  const path = `databases.${tag}.url`;
  if (typeof url === 'object') {
    const found = Object.hasOwn(url, env) ? url[env] : undefined;
    if (found !== undefined) return resolveRelativePath(found, root);
    const known = Object.keys(url).filter((name) => url[name] !== undefined);
    throw unknownEnvError(
      tag,
      env,
      Object.hasOwn(url, env) ? `${path}.${env} is undefined.` : `${path} has URLs for: ${known.join(', ') || 'none'}.`,
      [
        Object.hasOwn(url, env)
          ? 'Set the environment variable that contains the URL.'
          : `Add ${path}.${env} to the configuration.`,
        ...known.map((name) => `Use --env ${name}.`),
      ],
    );
  }
  if (url === undefined) {
    throw unknownEnvError(tag, env, `${path} is undefined.`, ['Set the environment variable that contains the URL.']);
  }
  if (config.env === env) return resolveRelativePath(url, root);
  throw unknownEnvError(
    tag,
    env,
    `${path} is a single URL, which applies only to the configuration's own env${config.env === undefined ? ', and none is set' : ` "${config.env}"`}.`,
    config.env === undefined
      ? [`Add env: '${env}' to the configuration.`]
      : [`Set ${path} to { ${config.env}: …, ${env}: … }.`],
  );
}

/** A relative path in a URL is relative to the folder of the configuration, not to the working directory. */
function resolveRelativePath(url: string, root: string): string {
  const [, scheme, path] = /^([a-z][a-z0-9+.-]*:\/\/)(\.{1,2}(?:\/.*)?)$/i.exec(url) ?? [];
  if (scheme === undefined || path === undefined) return url;
  const base = root.split(sep).map(encodeURIComponent).join('/');
  return `${scheme}${posix.resolve(base, path)}`;
}

function unknownEnvError(tag: string, env: string, why: string, next: readonly string[]): SvcError {
  return new SvcError('env_unknown', `The database "${tag}" has no URL for the environment "${env}".`, {
    why,
    next,
    details: { database: tag, env },
  });
}
