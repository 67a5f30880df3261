import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A fenced block of a page: what follows the fence, and its text. */
export interface DocsBlock {
  /** From the root of the repository. */
  readonly page: string;
  /** Of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  /** The words behind the language. */
  readonly word: string;
  readonly text: string;
}

const FENCE = /^( *)```(\w*) ?(.*)\n([\s\S]*?)^ *```$/gm;

/** Every block of README.md and of the pages in docs/. */
export function docsBlocks(): readonly DocsBlock[] {
  const names = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.md') && !name.startsWith('typedoc/'));
  return ['README.md', ...names.sort().map((name) => `docs/${name}`)].flatMap((page) => {
    const content = readFileSync(join(root, page), 'utf8');
    return [...content.matchAll(FENCE)].map(({ index, 2: language = '', 3: word = '', 4: text = '' }) => ({
      page,
      line: content.slice(0, index).split('\n').length,
      language,
      word,
      text,
    }));
  });
}
