import { posix, sep } from 'node:path';
import { SvcError } from '../core/errors.ts';
import type { Config, DatabaseConfig } from './define.ts';

/** The URL of a database in an environment. Throws `env_unknown` where there is none. */
export function databaseUrl(config: Config, tag: string, database: DatabaseConfig, env: string, root: string): string {
  const { url } = database;
  const path = `databases.${tag}.url`;
  if (typeof url === 'object') {
    const found = Object.hasOwn(url, env) ? url[env] : undefined;
    if (found !== undefined) return anchored(found, root);
    const known = Object.keys(url).filter((name) => url[name] !== undefined);
    throw envUnknown(
      tag,
      env,
      Object.hasOwn(url, env) ? `${path}.${env} is undefined.` : `${path} has ${known.join(', ') || 'none'}.`,
      [
        Object.hasOwn(url, env)
          ? 'Set the environment variable that the configuration reads there.'
          : `Add ${path}.${env} to the configuration.`,
        ...known.map((name) => `Use --env ${name}.`),
      ],
    );
  }
  if (url === undefined) {
    throw envUnknown(tag, env, `${path} is undefined.`, [
      'Set the environment variable that the configuration reads there.',
    ]);
  }
  if (config.env === env) return anchored(url, root);
  throw envUnknown(
    tag,
    env,
    `${path} is one URL, which serves only the configuration's own env${config.env === undefined ? ', and there is none' : ` "${config.env}"`}.`,
    [`Write { ${config.env ?? 'dev'}: …, ${env}: … } at ${path}.`],
  );
}

/** A relative path in a URL starts at the folder of the configuration, wherever the command was typed. */
function anchored(url: string, root: string): string {
  const [, scheme, path] = /^([a-z][a-z0-9+.-]*:\/\/)(\.{1,2}(?:\/.*)?)$/i.exec(url) ?? [];
  if (scheme === undefined || path === undefined) return url;
  const base = root.split(sep).map(encodeURIComponent).join('/');
  return `${scheme}${posix.resolve(base, path)}`;
}

function envUnknown(tag: string, env: string, why: string, next: readonly string[]): SvcError {
  return new SvcError('env_unknown', `The database "${tag}" has no URL for the environment "${env}".`, {
    why,
    next,
    details: { database: tag, env },
  });
}
