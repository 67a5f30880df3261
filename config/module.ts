import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { pathToFileURL } from 'node:url';
import { runInThisContext } from 'node:vm';
import { version } from '../core/version.ts';
import { cacheFile, digest, readCache, writeCache } from './cache.ts';
import { importer } from './import.ts';
import { nativeImport } from './native-import.ts';

/**
 * The default export of a module of the user's. TypeScript is transpiled once and then taken from a cache by content:
 * loading a transpiler costs more than everything else a command does.
 */
export async function loadModule(file: string): Promise<unknown> {
  if (!/\.m?ts$/.test(file)) {
    const loaded = await nativeImport(`${pathToFileURL(file).href}?${digest(readFileSync(file, 'utf8'))}`);
    return loaded.default;
  }
  const exports: Record<string, unknown> = {};
  const load = importer(file);
  const run: ModuleFunction = runInThisContext(`${WRAP}${await transpiled(file)}\n})`, {
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

async function transpiled(file: string): Promise<string> {
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

/** jiti hands over a module that says what it could not parse. */
function syntaxError(file: string, { line, column, message }: Readonly<Record<string, unknown>>): SyntaxError {
  const error = new SyntaxError(String(message).trim());
  error.stack = `${file}:${String(line)}:${String(column)}\n${error.stack}`;
  return error;
}
