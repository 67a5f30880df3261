import { SvcError } from '../core/errors.ts';
import type { Config } from './define.ts';
import { LINK_FILE, type Link } from './link.ts';

/** An environment and who named it. */
export interface ChosenEnv {
  readonly env: string;
  readonly from: 'argument' | 'link' | 'SVC_ENV' | 'config';
}

/**
 * What stands outside the configuration: the argument before the link before SVC_ENV. Link and SVC_ENV that disagree
 * are `env_conflict`, unless the argument decides.
 */
export function envOutside(argument: string | undefined, link: Link | undefined): ChosenEnv | undefined {
  if (argument !== undefined) return { env: argument, from: 'argument' };
  const linked = link?.env;
  const variable = process.env.SVC_ENV || undefined;
  if (linked !== undefined && variable !== undefined && linked !== variable) {
    throw new SvcError('env_conflict', `The link says "${linked}" and SVC_ENV says "${variable}".`, {
      why: 'Which database is meant must not be a guess.',
      next: [`Say --env ${linked} or --env ${variable}.`, 'Unset SVC_ENV.', `svc link --env ${variable}`],
      where: LINK_FILE,
    });
  }
  if (linked !== undefined) return { env: linked, from: 'link' };
  return variable === undefined ? undefined : { env: variable, from: 'SVC_ENV' };
}

/** With what the configuration itself says. Throws `config_invalid` where nobody names an environment. */
export function chooseEnv(outside: ChosenEnv | undefined, own: string | undefined, where?: string): ChosenEnv {
  if (outside) return outside;
  if (own !== undefined) return { env: own, from: 'config' };
  throw new SvcError('config_invalid', 'No environment is chosen.', {
    why: 'Neither --env, a link, SVC_ENV nor "env" in the configuration names one.',
    next: ['svc link --env dev', "Add env: 'dev' to the configuration."],
    ...(where !== undefined && { where }),
  });
}

/** Every environment that a configuration names anywhere, its own first. */
export function environments({ env, databases = {}, environments: described = {} }: Config): string[] {
  const names = new Set(env === undefined ? [] : [env]);
  for (const { url } of Object.values(databases)) {
    if (typeof url === 'object') for (const name of Object.keys(url)) names.add(name);
  }
  for (const name of Object.keys(described)) names.add(name);
  return [...names];
}
