import { existsSync, readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ENGINES, type Engine } from './engine.ts';

const FIND = fileURLToPath(new URL('find.ts', import.meta.url));

/** The engines whose servers a test file asks for: those that it, or a file it imports, names beside `find`. */
export function needs(file: string): readonly Engine[] {
  const texts = new Map<string, string>();
  const read = (path: string): void => {
    if (texts.has(path)) return;
    texts.set(path, readFileSync(path, 'utf8'));
    if (path !== FIND) for (const next of imported(path, texts.get(path) ?? '')) read(next);
  };
  read(resolve(file));
  const asking = [...texts].filter(([path, text]) => imported(path, text).includes(FIND)).map(([, text]) => text);
  return ENGINES.filter((engine) => asking.some((text) => new RegExp(`\\b${engine}\\b`).test(text)));
}

/** Files of the tests only: what is tested asks for no server. */
function imported(path: string, text: string): readonly string[] {
  return [...text.matchAll(/^(?:import|export|\}).*\bfrom '(\.[^']*\.ts)'/gm)]
    .map((match) => resolve(dirname(path), match[1] ?? ''))
    .filter((next) => next.startsWith(dirname(dirname(FIND))) && existsSync(next));
}
