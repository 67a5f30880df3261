import { existsSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { nativeImport } from './native-import.ts';

export type Import = (specifier: string) => Promise<Readonly<Record<string, unknown>>>;

const NATIVE = /\.(mjs|cjs|js|json|node)$/;

/**
 * Imports as the file `from` would: TypeScript included, and our own package as the copy that runs, installed or not.
 * jiti is loaded only where there is TypeScript to be read.
 */
export function importer(from: string): Import {
  return async (specifier) => {
    const own = OWN[specifier];
    if (own) return own();
    if (isBuiltin(specifier)) return nativeImport(specifier);
    const file = pathOf(specifier, from) ?? (await installedPath(specifier, from));
    return NATIVE.test(file) && existsSync(file) ? nativeImport(pathToFileURL(file).href) : throughJiti(file, from);
  };
}

const OWN: Readonly<Record<string, () => Promise<Readonly<Record<string, unknown>>>>> = {
  '@svc/sdk': () => import('./sdk.ts'),
  '@svc/sdk/config': () => import('./define.ts'),
};

function pathOf(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('file:')) return fileURLToPath(specifier);
  return /^\.{0,2}\//.test(specifier) || specifier === '.' || specifier === '..' || /^[A-Za-z]:[\\/]/.test(specifier)
    ? resolve(dirname(from), specifier)
    : undefined;
}

/** Where a package lies; what only ESM's conditions lead to, jiti finds. */
async function installedPath(specifier: string, from: string): Promise<string> {
  try {
    return createRequire(from).resolve(specifier);
  } catch {
    const { createJiti } = await import('jiti');
    const found = createJiti(from).esmResolve(specifier);
    return found.startsWith('file:') ? fileURLToPath(found) : found;
  }
}

async function throughJiti(file: string, from: string): Promise<Readonly<Record<string, unknown>>> {
  const { createJiti } = await import('jiti');
  const virtualModules = { '@svc/sdk': await import('./sdk.ts'), '@svc/sdk/config': await import('./define.ts') };
  return createJiti(from, { virtualModules }).import(file);
}
