import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { KeptScript } from './kept-script.ts';

/*
 * Stands for start.ts in the built package, where the whole command line is one script. Node compiles a script anew at
 * every start; what the commands of a group needed of it is kept.
 */

/** The scripts, named by their content: build.ts puts them here. */
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

/** Runs what was typed and gives the exit status. */
export async function start(typed: readonly string[]): Promise<number> {
  // What ran once and long ago is thrown away by the time that it is kept, the whole script's own frame first.
  setFlagsFromString('--no-flush-bytecode');
  const filename = join(__dirname, SCRIPT);
  const native = createRequire(filename);
  const drivers = new Map<string, KeptModule>();
  const required = (specifier: string): unknown => {
    const name = specifier.startsWith('file:') ? fileURLToPath(specifier) : specifier;
    const driver = drivers.get(name) ?? driverOf(name, native);
    if (!driver) return native(name);
    drivers.set(name, driver);
    return driver.exports;
  };
  const names = 'require, module, __filename, nativeImport';
  const program = new KeptScript<Program>(filename, 'latin1', names, `${groupOf(typed)}.v8`, SCRIPT);
  const module = { exports: {} };
  program.run(Object.assign(required, native), module, filename, (specifier) => import(specifier));
  const status = await (module.exports as typeof import('./start.ts')).start(typed);
  if (status === 0) {
    program.keep();
    for (const { script } of drivers.values()) script.keep();
  }
  return status;
}

/** By its name, or where a project has it. */
const MARIADB = /^mariadb$|[\\/]node_modules[\\/]mariadb[\\/]/;

/** The drivers that are a single large file: one of ours, and one whose licence lets nobody bundle it. */
function driverOf(name: string, native: NodeJS.Require): KeptModule | undefined {
  if (name === 'mysql2/promise') return keptModule(join(__dirname, MYSQL2), 'latin1', 'mysql2.v8', MYSQL2);
  if (!MARIADB.test(name)) return undefined;
  const path = native.resolve(name);
  return path.endsWith('.cjs') ? keptModule(path, 'utf8', 'mariadb.v8') : undefined;
}

interface KeptModule {
  readonly script: KeptScript<Module>;
  readonly exports: object;
}

function keptModule(path: string, encoding: 'latin1' | 'utf8', cache: string, identity?: string): KeptModule {
  const names = 'exports, require, module, __filename, __dirname';
  const script = new KeptScript<Module>(path, encoding, names, cache, identity);
  const module = { exports: {} };
  script.run(module.exports, createRequire(path), module, path, dirname(path));
  return { script, exports: module.exports };
}

/** `svc db migrate status` and `svc db migrate` need about the same. */
function groupOf(typed: readonly string[]): string {
  const words = typed.slice(0, 2).filter((word) => /^[a-z]{1,20}$/.test(word));
  return ['svc', ...words].join('-');
}
