import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';
import { bundles } from './bundled.ts';

/** A module is moved, and has to find what stands beside its source. */
const atHome: Plugin = {
  name: 'at-home',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const [url, file, folder] = [pathToFileURL(path).href, path, dirname(path)].map((text) => JSON.stringify(text));
      const home = `const sourceUrl = ${url}, sourceFile = ${file}, sourceFolder = ${folder};`;
      return { contents: `${home}${await readFile(path, 'utf8')}`, loader: 'ts' };
    });
  },
};

/**
 * These files as JavaScript, by their paths from the root, all at once: a process that has to translate what it imports
 * starts a second later. What they share stays one module.
 */
export async function built(root: string, files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const outdir = join(bundles(), 'run');
  await build({
    ...{ absWorkingDir: root, entryPoints: [...files], outdir, outbase: root, outExtension: { '.js': '.mjs' } },
    ...{ bundle: true, splitting: true, packages: 'external', platform: 'node', target: 'node20.19', format: 'esm' },
    ...{ sourcemap: 'linked', sourcesContent: false, keepNames: true, logLevel: 'silent', plugins: [atHome] },
    define: {
      'import.meta.url': 'sourceUrl',
      'import.meta.filename': 'sourceFile',
      'import.meta.dirname': 'sourceFolder',
    },
  });
  return new Map(files.map((file) => [file, join(outdir, file.replace(/\.ts$/, '.mjs'))]));
}
