import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { version } from '../core/version.ts';

const INSTALLED = /^(.*)[\\/]node_modules[\\/]@svc[\\/]sdk[\\/]/;

/**
 * What a new project writes for `@svc/sdk`: SVC_SDK_SPEC, or what the project says from whose node_modules this CLI
 * runs (npx keeps a packed tarball there), or this version from the registry.
 */
export function sdkSpec(): string {
  const asked = process.env.SVC_SDK_SPEC;
  if (asked) return asked;
  const home = INSTALLED.exec(import.meta.filename)?.[1];
  const said = home === undefined ? undefined : specIn(home);
  return said ?? `^${version}`;
}

function specIn(home: string): string | undefined {
  const file = join(home, 'package.json');
  if (!existsSync(file)) return undefined;
  const { dependencies, devDependencies }: Record<string, Record<string, string> | undefined> = JSON.parse(
    readFileSync(file, 'utf8'),
  );
  const spec = { ...devDependencies, ...dependencies }['@svc/sdk'];
  return spec?.startsWith('file:') ? `file:${resolve(home, spec.slice('file:'.length))}` : spec;
}
