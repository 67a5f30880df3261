import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { SvcError } from '../core/errors.ts';

/** Files that are run, in order of precedence. */
const MODULES = ['svc.config.ts', 'svc.config.mts', 'svc.config.js', 'svc.config.mjs', 'svc.config.cjs'] as const;

/** Where a configuration may stand in a folder, in order of precedence. */
export const SEARCH_PLACES = [
  ...MODULES,
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

/** The nearest configuration from a folder upwards: one look at each folder. */
export function findConfig(from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    const names = new Set(list(folder));
    const place = SEARCH_PLACES.find((name) => names.has(name) && (name !== 'package.json' || hasSection(folder)));
    if (place !== undefined) return join(folder, place);
    if (dirname(folder) === folder) return undefined;
  }
}

export function configMissing(from: string): SvcError {
  return new SvcError('config_missing', `No svc.config was found in ${from} or above it.`, {
    next: ['svc init', 'Name one with --config <file>.'],
  });
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return []; // a folder that may not be read has no configuration for us: the ones above it may
  }
}

function hasSection(folder: string): boolean {
  const text = readFileSync(join(folder, 'package.json'), 'utf8');
  if (!text.includes('"svc"')) return false;
  try {
    const manifest: unknown = JSON.parse(text);
    return typeof manifest === 'object' && manifest !== null && Object.hasOwn(manifest, 'svc');
  } catch {
    return false; // npm is the one to complain about it
  }
}
