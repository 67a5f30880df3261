import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SvcError } from '../core/errors.ts';
import { isPlainObject } from '../core/json.ts';

export const LINK_FILE = 'svc/config.json';

/** What ties a folder to an environment. */
export interface Link {
  readonly product?: string;
  readonly env?: string;
}

/** The link beside a configuration, if there is one. Throws `file_invalid`. */
export function readLink(root: string): Link | undefined {
  const file = join(root, LINK_FILE);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw linkInvalid(file, error instanceof Error ? error.message : String(error));
  }
  let link: unknown;
  try {
    link = JSON.parse(text);
  } catch (error) {
    throw linkInvalid(file, error instanceof Error ? error.message : String(error));
  }
  if (!isPlainObject(link)) throw linkInvalid(file, 'It is not an object.');
  for (const key of ['product', 'env'] as const) {
    const value = link[key];
    if (value !== undefined && (typeof value !== 'string' || value === ''))
      throw linkInvalid(file, `"${key}" is not a string.`);
  }
  return link;
}

function linkInvalid(file: string, why: string): SvcError {
  return new SvcError('file_invalid', 'The link to an environment cannot be read.', {
    why,
    next: ['svc link --env <env>'],
    where: file,
  });
}
