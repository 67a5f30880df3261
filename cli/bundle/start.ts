import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { cacheFile, readCache, writeCache } from '../../config/load/disk-cache.ts';

/*
 * Replaces ../start.ts in the built package, where the command line is one script. Node would compile that script at
 * every start; each group of commands has its own code cache.
 */

/** File names of the scripts, with a content hash; defined by build.ts. */
declare const SCRIPT: string;
declare const MYSQL2: string;

type Program = (
  require: NodeJS.Require,
  module: { exports: object },
  filename: string,
  nativeImport: (specifier: string) => Promise<object>,
) => void;

type Module = (
  exports: object,
  require: NodeJS.Require,
  module: { exports: object },
  filename: string,
  dirname: string,
) => void;

/** Runs a command line and returns the exit status. */
export async function start(args: readonly string[]): Promise<number> {
  // Otherwise V8 discards the bytecode of functions that ran only at the start, before the cache is written.
  setFlagsFromString('--no-flush-bytecode');
  // What takes longer than a command that ends soon: optimizing PGlite's WebAssembly, and validating what is never called.
  if (args[1] !== 'serve') {
    for (const flag of ['liftoff-only', 'no-wasm-tier-up', 'no-wasm-dynamic-tiering', 'wasm-lazy-validation']) {
      setFlagsFromString(`--${flag}`);
    }
    // Optimizes JavaScript ten times later; newer versions do not have the flag, and report it.
    if (process.version.startsWith('v20.')) setFlagsFromString('--interrupt-budget=675840');
  }
  const filename = join(__dirname, SCRIPT);
  const native = createRequire(filename);
  const drivers = new Map<string, CachedModule>();
  const required = (specifier: string): unknown => {
    const name = specifier.startsWith('file:') ? fileURLToPath(specifier) : specifier;
    const driver = drivers.get(name) ?? loadDriver(name, native);
    if (!driver) return native(name);
    drivers.set(name, driver);
    return driver.exports;
  };
  const parameters = 'require, module, __filename, nativeImport';
  const program = new CachedScript<Program>(filename, 'latin1', parameters, `${groupOf(args)}.v8`, SCRIPT);
  const module = { exports: {} };
  program.run(Object.assign(required, native), module, filename, (specifier) => import(specifier));
  const status = await (module.exports as typeof import('../start.ts')).start(args);
  if (status === 0) {
    program.saveCache();
    for (const { script } of drivers.values()) script.saveCache();
  }
  return status;
}

/** By package name, or by path in a project. */
const INSTALLED = /(?:^|[\\/]node_modules[\\/])(mariadb|@electric-sql[\\/]pglite)(?:$|[\\/])/;

/**
 * Drivers that are one large file: mysql2, which is bundled, mariadb, whose license does not permit bundling, and PGlite,
 * which has data next to its file.
 */
function loadDriver(name: string, native: NodeJS.Require): CachedModule | undefined {
  if (name === 'mysql2/promise') return loadCached(join(__dirname, MYSQL2), 'latin1', 'mysql2.v8', MYSQL2);
  const [, driver] = INSTALLED.exec(name) ?? [];
  if (driver === undefined) return undefined;
  const path = native.resolve(name);
  return path.endsWith('.cjs') ? loadCached(path, 'utf8', `${basename(driver)}.v8`) : undefined;
}

interface CachedModule {
  readonly script: CachedScript<Module>;
  readonly exports: object;
}

function loadCached(path: string, encoding: 'latin1' | 'utf8', cache: string, identity?: string): CachedModule {
  const parameters = 'exports, require, module, __filename, __dirname';
  const script = new CachedScript<Module>(path, encoding, parameters, cache, identity);
  const module = { exports: {} };
  script.run(module.exports, createRequire(path), module, path, dirname(path));
  return { script, exports: module.exports };
}

/** Commands that share their first two words, such as `svc db migrate` and `svc db migrate status`, share a cache. */
function groupOf(args: readonly string[]): string {
  const words = args.slice(0, 2).filter((word) => /^[a-z]{1,20}$/.test(word));
  return ['svc', ...words].join('-');
}

const CHECKSUM_LENGTH = 64;
/** An import of a module of Node. */
const IMPORT = /\bimport\(("[\w:/]+")\)/g;

/** A script with V8's code cache: the next process reuses the compiled functions. */
export class CachedScript<Run extends (...given: never[]) => void> {
  readonly run: Run;
  readonly #script: Script;
  readonly #file: string | undefined;
  readonly #isCached: boolean;
  readonly #identity: string;

  /**
   * `parameters`: the names of the arguments that `run` passes to the script. `identity`: identifies the content of the
   * script; default: the content.
   */
  constructor(filename: string, encoding: 'latin1' | 'utf8', parameters: string, cache: string, identity?: string) {
    const content = readFileSync(filename, encoding);
    // A script from the code cache has no `import()`.
    const source = identity === undefined ? content.replace(IMPORT, 'process.getBuiltinModule($1)') : content;
    this.#identity = identity ?? source;
    this.#file = cacheFile(__dirname, cache);
    const wrap = `(function (${parameters}) {`;
    const data = this.#validData(readCache(this.#file));
    this.#script = new Script(`${wrap}${source}\n})`, {
      filename,
      columnOffset: -wrap.length,
      ...(data && { cachedData: data }),
    });
    this.#isCached = data !== undefined && this.#script.cachedDataRejected !== true;
    this.run = this.#script.runInThisContext() as Run;
  }

  /** Call it at the end of the process, when everything needed is compiled. */
  saveCache(): void {
    if (this.#isCached) return;
    const data = this.#script.createCachedData();
    writeCache(this.#file, Buffer.concat([Buffer.from(this.#checksum(data)), data]));
  }

  #validData(content: Buffer | undefined): Buffer | undefined {
    const data = content?.subarray(CHECKSUM_LENGTH);
    return data && this.#checksum(data) === content?.toString('latin1', 0, CHECKSUM_LENGTH) ? data : undefined;
  }

  /** V8 compares only the length of the source, so data of another script or damaged data must be detected here. */
  #checksum(data: Uint8Array): string {
    return createHash('sha256').update(this.#identity).update(data).digest('hex');
  }
}
