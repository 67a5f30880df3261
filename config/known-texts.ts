import { hash } from 'node:crypto';
import { isPlainObject } from '../core/json.ts';
import { version } from '../core/version.ts';
import { cacheFile, digest, readCache, writeCache } from './cache.ts';

type Known = readonly [digest: string, checksum: string];

/**
 * Which texts are known to be a valid migration, and with which checksum: kept by content, so that neither a clock nor
 * a copied file can mislead it. What one version of the SDK found valid says nothing to another.
 */
export class KnownTexts {
  readonly #file: string | undefined;
  readonly #before: ReadonlyMap<string, Known>;
  readonly #now = new Map<string, Known>();
  #changed = false;

  constructor(root: string, folder: string) {
    this.#file = cacheFile(root, `${digest(`${root}\n${folder}`)}.json`);
    this.#before = knownIn(readCache(this.#file));
  }

  /** Of the migration, where exactly this text is known to be that one. */
  checksum(tag: string, text: string): string | undefined {
    const known = this.#before.get(tag);
    if (known?.[0] !== whole(text)) return undefined;
    this.#now.set(tag, known);
    return known[1];
  }

  keep(tag: string, text: string, checksum: string): void {
    this.#now.set(tag, [whole(text), checksum]);
    this.#changed = true;
  }

  /** Forgets what was not asked for: its file is gone. */
  save(): void {
    if (!this.#changed && this.#now.size === this.#before.size) return;
    writeCache(this.#file, JSON.stringify({ version, texts: [...this.#now] }));
  }
}

function knownIn(text: Buffer | undefined): ReadonlyMap<string, Known> {
  if (text === undefined) return new Map();
  try {
    const said: unknown = JSON.parse(text.toString());
    if (isPlainObject(said) && said.version === version && isTexts(said.texts)) return new Map(said.texts);
  } catch {
    // damaged: it is made anew
  }
  return new Map();
}

function isTexts(value: unknown): value is readonly [string, Known][] {
  return Array.isArray(value) && value.every((entry) => Array.isArray(entry) && Array.isArray(entry[1]));
}

function whole(text: string): string {
  return hash('sha256', text, 'base64');
}
