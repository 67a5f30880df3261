import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { Plugin } from '../../core/kernel.ts';
import { folder } from './folder.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** A fenced block of code on a page. */
export interface DocsBlock {
  /** The path from the root of the repository. */
  readonly page: string;
  /** The line of the fence, from 1. */
  readonly line: number;
  readonly language: string;
  /** The text after the language. */
  readonly annotation: string;
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
    return [...content.matchAll(FENCE)].map(({ index, 2: language = '', 3: annotation = '', 4: text = '' }) => ({
      page,
      line: content.slice(0, index).split('\n').length,
      language,
      annotation,
      text,
    }));
  });
}

const SDK = new URL('../../config/sdk/index.ts', import.meta.url).href;

/** Imports the plugin that a block exports, with the SDK of the sources, so that it shares the kernel of the tests. */
export async function importDocsPlugin({ text }: DocsBlock): Promise<Plugin> {
  const root = folder({ 'plugin.mts': text.replaceAll("'@svc/sdk'", `'${SDK}'`) });
  const { default: plugin }: { default: Plugin } = await import(pathToFileURL(join(root, 'plugin.mts')).href);
  return plugin;
}
