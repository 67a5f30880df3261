import { existsSync, readFileSync } from 'node:fs';
import { createRequire, isBuiltin } from 'node:module';
import { dirname, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { SvcError } from '../../core/errors.ts';
import { version } from '../../core/version.ts';
import { cacheFile, digest, readCache, writeCache } from './disk-cache.ts';
import { nativeImport } from './native-import.ts';

const LOAD_TIMEOUT_MS = 30_000;

/** Loads the default export of a user module. Throws `file_invalid` if its top level does not end within the limit. */
export async function loadModule(file: string, loadSdk: LoadSdk, limitMs = LOAD_TIMEOUT_MS): Promise<unknown> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // The timer keeps no process alive: one that waits for nothing else ends at once, which `watchExit` reports.
    timer = setTimeout(() => reject(unfinishedError(file, limitMs)), limitMs).unref();
  });
  try {
    return await Promise.race([defaultExport(file, loadSdk), late]);
  } finally {
    clearTimeout(timer);
  }
}

function unfinishedError(file: string, limitMs: number): SvcError {
  return new SvcError('file_invalid', `${file} did not finish loading.`, {
    why: `Its top level was still running after ${limitMs / 1000} s: an await in it, or in a module that it imports, does not end.`,
    state: 'Nothing was changed.',
    next: ['Remove that await from the top level, then run the command again.'],
    where: file,
  });
}

/** Transpiled TypeScript is cached by content, because loading the transpiler takes longer than the rest of a command. */
async function defaultExport(file: string, loadSdk: LoadSdk): Promise<unknown> {
  if (!/\.m?ts$/.test(file)) {
    const loaded = await nativeImport(`${pathToFileURL(file).href}?${digest(readFileSync(file, 'utf8'))}`);
    return loaded.default;
  }
  const exports: Record<string, unknown> = {};
  const load = importer(file, loadSdk);
  const run: ModuleFunction = runInThisContext(`${WRAP}${await transpile(file)}\n})`, {
    filename: file,
    columnOffset: -WRAP.length,
  });
  await run(exports, createRequire(file), { exports }, file, dirname(file), async (specifier) => {
    const loaded = await load(specifier);
    return '__esModule' in loaded ? loaded : { __esModule: true, ...loaded };
  });
  return exports.default;
}

const WRAP = '(async (exports, require, module, __filename, __dirname, jitiImport) => {';

type ModuleFunction = (
  exports: Record<string, unknown>,
  require: NodeJS.Require,
  module: object,
  filename: string,
  dirname: string,
  jitiImport: (specifier: string) => Promise<unknown>,
) => Promise<void>;

async function transpile(file: string): Promise<string> {
  const source = readFileSync(file, 'utf8');
  const stamp = `// ${digest(`${version}\n${file}\n${source}`)}\n`;
  const cache = cacheFile(dirname(file), `${digest(file)}.js`);
  const cached = readCache(cache)?.toString();
  if (cached?.startsWith(stamp)) return cached.slice(stamp.length);
  const { createJiti } = await import('jiti');
  const code = createJiti(file).transform({ source, filename: file, ts: true, async: true, retainLines: true });
  const [, failure] = /^exports\.__JITI_ERROR__ = (\{.*\})/.exec(code) ?? [];
  if (failure !== undefined) throw syntaxError(file, JSON.parse(failure));
  writeCache(cache, stamp + code);
  return code;
}

/** For a syntax error, jiti returns a module that contains the description. */
function syntaxError(file: string, { line, column, message }: Readonly<Record<string, unknown>>): SyntaxError {
  const error = new SyntaxError(String(message).trim());
  error.stack = `${file}:${String(line)}:${String(column)}\n${error.stack}`;
  return error;
}

type Exports = Readonly<Record<string, unknown>>;

export type Import = (specifier: string) => Promise<Exports>;

/** Loads the running copy of `@svc/sdk`. Passed in, because the SDK depends on this module. */
export type LoadSdk = () => Promise<Exports>;

const IMPORTED_BY_NODE = /\.(mjs|cjs|js|json|node)$/;

/**
 * Imports specifiers as the file `from` would, including TypeScript. `@svc/sdk` is the running copy, installed or not.
 * Loads jiti only for TypeScript.
 */
export function importer(from: string, loadSdk: LoadSdk): Import {
  return async (specifier) => {
    if (specifier === '@svc/sdk') return loadSdk();
    if (specifier === '@svc/sdk/config') return import('../define.ts');
    if (isBuiltin(specifier)) return nativeImport(specifier);
    const file = resolvePath(specifier, from) ?? (await resolvePackage(specifier, from));
    return IMPORTED_BY_NODE.test(file) && existsSync(file)
      ? nativeImport(pathToFileURL(file).href)
      : importWithJiti(file, from, loadSdk);
  };
}

function resolvePath(specifier: string, from: string): string | undefined {
  if (specifier.startsWith('file:')) return fileURLToPath(specifier);
  return /^\.{0,2}\//.test(specifier) || specifier === '.' || specifier === '..' || /^[A-Za-z]:[\\/]/.test(specifier)
    ? resolve(dirname(from), specifier)
    : undefined;
}

/** jiti resolves packages that have only an `import` export condition. */
async function resolvePackage(specifier: string, from: string): Promise<string> {
  try {
    return createRequire(from).resolve(specifier);
  } catch {
    const { createJiti } = await import('jiti');
    const found = createJiti(from).esmResolve(specifier);
    return found.startsWith('file:') ? fileURLToPath(found) : found;
  }
}

async function importWithJiti(file: string, from: string, loadSdk: LoadSdk): Promise<Exports> {
  const { createJiti } = await import('jiti');
  const virtualModules = { '@svc/sdk': await loadSdk(), '@svc/sdk/config': await import('../define.ts') };
  return createJiti(from, { virtualModules }).import(file);
}
