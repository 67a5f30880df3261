import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Plugin } from '../../core/kernel.ts';
import type { DocsBlock } from './docs-blocks.ts';
import { folder } from './folder.ts';

const SDK = new URL('../../config/sdk/index.ts', import.meta.url).href;

/** The plugin that a block exports: against the sources, whose kernel is the one of the tests. */
export async function docsPlugin({ text }: DocsBlock): Promise<Plugin> {
  const home = folder({ 'plugin.mts': text.replaceAll("'@svc/sdk'", `'${SDK}'`) });
  const { default: plugin }: { default: Plugin } = await import(pathToFileURL(join(home, 'plugin.mts')).href);
  return plugin;
}
