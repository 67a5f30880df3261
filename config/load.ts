import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isSvcError, SvcError } from '../core/errors.ts';
import type { ConfigContext } from './define.ts';
import { configMissing, findConfig, SEARCH_PLACES } from './find.ts';
import { loadModule } from './module.ts';

export interface FoundConfig {
  readonly file: string;
  /** The folder of the file: paths in the configuration start there. */
  readonly root: string;
}

/** The file that was named, or the nearest one from `cwd` upwards. Throws `config_missing`. */
export function locateConfig(cwd: string, named?: string): FoundConfig {
  const file = named === undefined ? findConfig(cwd) : resolve(cwd, named);
  if (file === undefined) throw configMissing(cwd);
  if (!existsSync(file))
    throw new SvcError('config_missing', `There is no file ${file}.`, {
      next: ['Name another one with --config <file>.'],
    });
  return { file, root: dirname(file) };
}

/**
 * What the file says for that environment, unchecked. Throws `config_failed` with the place and the words of what
 * went wrong.
 */
export async function loadConfigFile(file: string, context: ConfigContext): Promise<unknown> {
  try {
    const said = /svc\.config\.[cm]?[jt]s$/.test(file) ? await loadModule(file) : await throughCosmiconfig(file);
    return await (typeof said === 'function' ? said(context) : said);
  } catch (error) {
    if (isSvcError(error)) throw error;
    throw configFailed(file, error);
  }
}

async function throughCosmiconfig(file: string): Promise<unknown> {
  const { cosmiconfig } = await import('cosmiconfig');
  const loaders = Object.fromEntries(['.ts', '.mts', '.js', '.mjs', '.cjs'].map((ending) => [ending, loadModule]));
  const found = await cosmiconfig('svc', { searchPlaces: SEARCH_PLACES, loaders, cache: false }).load(file);
  return found === null || found.isEmpty ? undefined : found.config;
}

function configFailed(file: string, error: unknown): SvcError {
  const words = error instanceof Error ? error.message : String(error);
  return new SvcError('config_failed', 'The configuration could not be loaded.', {
    why:
      (error instanceof Error && error.name !== 'Error' ? `${error.name}: ${words}` : words).split('\n', 1)[0] ?? words,
    next: ['Mend the file.'],
    where: placeIn(file, error) ?? file,
    cause: error,
  });
}

/** `file:line:column` of the first frame, or of the message, that lies in the file. */
function placeIn(file: string, error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const escaped = file.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const frame = new RegExp(`${escaped}(?:\\?[0-9a-f]+)?:(\\d+)(?::(\\d+))?`).exec(error.stack ?? '');
  if (frame) return [file, frame[1], frame[2]].filter(Boolean).join(':');
  const said = /\((\d+):(\d+)\)/.exec(error.message);
  return said ? `${file}:${said[1]}:${said[2]}` : undefined;
}
