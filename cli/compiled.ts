import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { KeptScript } from './kept-script.ts';

/*
 * Stands for start.ts in the built package, where the whole command line is one script. Node compiles a script anew at
 * every start; what the commands of a group needed of it is kept.
 */

/** The script, named by its content: build.ts puts it here. */
declare const SCRIPT: string;

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

/** A driver that is a single large file, and whose licence lets nobody put it into the script. */
const DRIVER = 'mariadb';

/** Runs what was typed and gives the exit status. */
export async function start(typed: readonly string[]): Promise<number> {
  // What ran once and long ago is thrown away by the time that it is kept, the whole script's own frame first.
  setFlagsFromString('--no-flush-bytecode');
  const filename = join(__dirname, SCRIPT);
  const native = createRequire(filename);
  let driver: { readonly script: KeptScript<Module>; readonly exports: object } | undefined;
  const required = (name: string): unknown => {
    if (name !== DRIVER) return native(name);
    const path = native.resolve(name);
    if (!path.endsWith('.cjs')) return native(name);
    driver ??= driverAt(path);
    return driver.exports;
  };
  const names = 'require, module, __filename, nativeImport';
  const program = new KeptScript<Program>(filename, 'latin1', names, `${groupOf(typed)}.v8`, SCRIPT);
  const module = { exports: {} };
  program.run(Object.assign(required, native), module, filename, (specifier) => import(specifier));
  const status = await (module.exports as typeof import('./start.ts')).start(typed);
  if (status === 0) {
    program.keep();
    driver?.script.keep();
  }
  return status;
}

function driverAt(path: string) {
  const names = 'exports, require, module, __filename, __dirname';
  const script = new KeptScript<Module>(path, 'utf8', names, `${DRIVER}.v8`);
  const module = { exports: {} };
  script.run(module.exports, createRequire(path), module, path, dirname(path));
  return { script, exports: module.exports };
}

/** `svc db migrate status` and `svc db migrate` need about the same. */
function groupOf(typed: readonly string[]): string {
  const words = typed.slice(0, 2).filter((word) => /^[a-z]{1,20}$/.test(word));
  return ['svc', ...words].join('-');
}
