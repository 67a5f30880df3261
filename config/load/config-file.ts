import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { tryParseJson } from '../../core/json.ts';
import { escapeRegExp } from '../../core/match-text.ts';
import type { ConfigContext } from '../define.ts';
import { type LoadSdk, loadModule } from './import-module.ts';

export interface FoundConfig {
  readonly file: string;
  /** The folder of the file; paths in the configuration are relative to it. */
  readonly root: string;
}

/** Returns the named file, or the nearest one in `cwd` and its parents. Throws `config_missing`. */
export function locateConfig(cwd: string, named?: string): FoundConfig {
  const file = named === undefined ? findConfig(cwd) : resolve(cwd, named);
  if (file === undefined) throw missingConfigError(cwd);
  if (!existsSync(file))
    throw new SvcError('config_missing', `The file ${file} does not exist.`, {
      next: ['Pass another file with --config <file>.'],
    });
  return { file, root: dirname(file) };
}

/** Loads the unchecked configuration for an environment. Throws `config_failed` with the location of the error. */
export async function loadConfigFile(file: string, context: ConfigContext, loadSdk: LoadSdk): Promise<unknown> {
  const load = (path: string) => loadModule(path, loadSdk);
  try {
    const exported = await (/svc\.config\.[cm]?[jt]s$/.test(file) ? load(file) : loadWithCosmiconfig(file, load));
    return await (typeof exported === 'function' ? exported(context) : exported);
  } catch (error) {
    if (isSvcError(error)) throw error;
    throw failedConfigError(file, error);
  }
}

async function loadWithCosmiconfig(file: string, load: (path: string) => Promise<unknown>): Promise<unknown> {
  const { cosmiconfig } = await import('cosmiconfig');
  const loaders = Object.fromEntries(['.ts', '.mts', '.js', '.mjs', '.cjs'].map((extension) => [extension, load]));
  const found = await cosmiconfig('svc', { searchPlaces: SEARCH_PLACES, loaders, cache: false }).load(file);
  return found === null || found.isEmpty ? undefined : found.config;
}

function failedConfigError(file: string, error: unknown): SvcError {
  const message = error instanceof Error ? error.message : String(error);
  return new SvcError('config_failed', 'The configuration could not be loaded.', {
    why:
      (error instanceof Error && error.name !== 'Error' ? `${error.name}: ${message}` : message).split('\n', 1)[0] ??
      message,
    next: ['Fix the error in the file.'],
    where: locationIn(file, error) ?? file,
    cause: error,
  });
}

/** `file:line:column` in the file, from the first stack frame or the message. */
function locationIn(file: string, error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const frame = new RegExp(`${escapeRegExp(file)}(?:\\?[0-9a-f]+)?:(\\d+)(?::(\\d+))?`).exec(error.stack ?? '');
  if (frame) return [file, frame[1], frame[2]].filter(Boolean).join(':');
  const position = /\((\d+):(\d+)\)/.exec(error.message);
  return position ? `${file}:${position[1]}:${position[2]}` : undefined;
}

/** The file names of a configuration, in order of precedence. */
export const SEARCH_PLACES = [
  'svc.config.ts',
  'svc.config.mts',
  'svc.config.js',
  'svc.config.mjs',
  'svc.config.cjs',
  'svc.config.json',
  'svc.config.yaml',
  'svc.config.yml',
  '.svcrc',
  '.svcrc.json',
  '.svcrc.yaml',
  '.svcrc.yml',
  '.svcrc.ts',
  '.svcrc.mts',
  '.svcrc.js',
  '.svcrc.mjs',
  '.svcrc.cjs',
  'package.json',
];

/** Finds the nearest configuration in a folder and its parents, reading each folder once. */
export function findConfig(from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const names = new Set(readFolder(folder));
    const place = SEARCH_PLACES.find((name) => names.has(name) && (name !== 'package.json' || hasSvcKey(folder)));
    if (place !== undefined) return join(folder, place);
    if (dirname(folder) === folder) return undefined;
  }
}

function missingConfigError(from: string): SvcError {
  return new SvcError('config_missing', `No svc.config was found in ${from} or its parent folders.`, {
    next: ['svc init', 'Pass a file with --config <file>.'],
  });
}

function readFolder(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // Skip an unreadable folder: its parents may contain a configuration.
  }
}

function hasSvcKey(folder: string): boolean {
  const text = readFileSync(join(folder, 'package.json'), 'utf8');
  if (!text.includes('"svc"')) return false;
  const manifest = tryParseJson(text);
  return typeof manifest === 'object' && manifest !== null && Object.hasOwn(manifest, 'svc');
}

/** Reads `.env` next to the configuration; variables that are already set keep their values. */
export async function loadDotEnv(root: string): Promise<void> {
  const file = join(root, '.env');
  if (!existsSync(file)) return;
  const { config } = await import('dotenv');
  config({ path: file, quiet: true });
}
