import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';
import { cacheFile, readCache, writeCache } from '../config/cache.ts';

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

const WRAP = '(function (require, module, __filename, nativeImport) {';

/** Runs what was typed and gives the exit status. */
export async function start(typed: readonly string[]): Promise<number> {
  // What ran once and long ago is thrown away by the time that it is kept, the whole script's own frame first.
  setFlagsFromString('--no-flush-bytecode');
  const filename = join(__dirname, SCRIPT);
  const cache = cacheFile(__dirname, `${groupOf(typed)}.v8`);
  const kept = compiledIn(readCache(cache));
  const script = new Script(`${WRAP}${readFileSync(filename, 'utf8')}\n})`, {
    filename,
    columnOffset: -WRAP.length,
    ...(kept && { cachedData: kept }),
  });
  const module = { exports: {} };
  (script.runInThisContext() as Program)(createRequire(filename), module, filename, (specifier) => import(specifier));
  const status = await (module.exports as typeof import('./start.ts')).start(typed);
  if ((!kept || script.cachedDataRejected) && status === 0) writeCache(cache, sealed(script.createCachedData()));
  return status;
}

/** `svc db migrate status` and `svc db migrate` need about the same. */
function groupOf(typed: readonly string[]): string {
  const words = typed.slice(0, 2).filter((word) => /^[a-z]{1,20}$/.test(word));
  return ['svc', ...words].join('-');
}

const SEAL = 64;

/** V8 compares no more of a script than its length: the data of another build, or of a damaged disk, is not for it. */
function sealed(data: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(seal(data)), data]);
}

function compiledIn(content: Buffer | undefined): Buffer | undefined {
  const data = content?.subarray(SEAL);
  return data && seal(data) === content?.toString('latin1', 0, SEAL) ? data : undefined;
}

function seal(data: Uint8Array): string {
  return createHash('sha256').update(SCRIPT).update(data).digest('hex');
}
