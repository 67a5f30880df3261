import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { cacheFile, readCache, writeCache } from '../../config/load/cache.ts';

const CHECKSUM_LENGTH = 64;

/** A script with V8's code cache: functions that one process compiled are ready in the next. */
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
    const source = readFileSync(filename, encoding);
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
