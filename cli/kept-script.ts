import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { cacheFile, readCache, writeCache } from '../config/cache.ts';

const SEAL = 64;

/** A script of the disk that is compiled once: what it needed by the end of a process is there when the next begins. */
export class KeptScript<Run extends (...given: never[]) => void> {
  readonly run: Run;
  readonly #script: Script;
  readonly #file: string | undefined;
  readonly #isKept: boolean;
  readonly #identity: string;

  /**
   * `names`: of what the script is given, as a module is given `require`. `identity`: says which content it is; without
   * one, the content itself.
   */
  constructor(filename: string, encoding: 'latin1' | 'utf8', names: string, cache: string, identity?: string) {
    const source = readFileSync(filename, encoding);
    this.#identity = identity ?? source;
    this.#file = cacheFile(__dirname, cache);
    const wrap = `(function (${names}) {`;
    const kept = this.#compiledIn(readCache(this.#file));
    this.#script = new Script(`${wrap}${source}\n})`, {
      filename,
      columnOffset: -wrap.length,
      ...(kept && { cachedData: kept }),
    });
    this.#isKept = kept !== undefined && this.#script.cachedDataRejected !== true;
    this.run = this.#script.runInThisContext() as Run;
  }

  /** To be called when it has done what it does. */
  keep(): void {
    if (this.#isKept) return;
    const data = this.#script.createCachedData();
    writeCache(this.#file, Buffer.concat([Buffer.from(this.#seal(data)), data]));
  }

  #compiledIn(content: Buffer | undefined): Buffer | undefined {
    const data = content?.subarray(SEAL);
    return data && this.#seal(data) === content?.toString('latin1', 0, SEAL) ? data : undefined;
  }

  /** V8 compares no more of a script than its length: the data of another one, or of a damaged disk, is not for it. */
  #seal(data: Uint8Array): string {
    return createHash('sha256').update(this.#identity).update(data).digest('hex');
  }
}
