import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, type Plugin } from 'esbuild';

// Inside the project, where packages are found.
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/', import.meta.url));
let processFolder: string | undefined;

/** A folder of this process, removed when the process ends. */
export function bundleFolder(): string {
  if (processFolder === undefined) {
    mkdirSync(CACHE, { recursive: true });
    const created = mkdtempSync(join(CACHE, 'svc-test-'));
    process.once('exit', () => rmSync(created, { recursive: true, force: true }));
    processFolder = created;
  }
  return processFolder;
}

/** Bundles a script of this folder into one JavaScript file, which starts six times faster. Returns its path. */
export async function bundleScript(name: string): Promise<string> {
  const outfile = join(bundleFolder(), `${basename(name, '.ts')}.mjs`);
  await build({
    entryPoints: [fileURLToPath(new URL(name, import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    format: 'esm',
    packages: 'external',
  });
  return outfile;
}

/**
 * Modules that tests start or load in other processes, by a URL such as `new URL('../plugin.ts', import.meta.url)`.
 */
const LOADED_ELSEWHERE = [
  'test/suites/dialect-process.ts',
  'test/suites/key-value-file-process.ts',
  'test/suites/wrong/dialects.ts',
  'test/suites/wrong/key-value-files.ts',
  'test/suites/wrong/ordered-key-servers.ts',
  'test/kit/file-store.ts',
  'test/kit/ordered-keys.ts',
  ...['cassandra', 'dynamodb', 'mariadb', 'mongodb', 'mysql', 'postgresql'].map(
    (name) => `plugins/dialects/${name}/dialect.ts`,
  ),
];

/**
 * Makes bundled modules see the location of their source, so that they find the files next to it, and the bundles of
 * `loadedElsewhere`.
 */
const sourceLocation = (loadedElsewhere: ReadonlyMap<string, string>): Plugin => ({
  name: 'source-location',
  setup({ onLoad }) {
    onLoad({ filter: /\.ts$/ }, async ({ path }) => {
      const [url, file, folder] = [pathToFileURL(path).href, path, dirname(path)].map((text) => JSON.stringify(text));
      const constants = `const sourceUrl = ${url}, sourceFile = ${file}, sourceFolder = ${folder};`;
      const source = await readFile(path, 'utf8');
      const contents = source.replace(/new URL\('(\.[^']+)', import\.meta\.url\)/g, (original, relative: string) => {
        const bundle = loadedElsewhere.get(join(dirname(path), relative));
        return bundle === undefined ? original : `new URL(${JSON.stringify(pathToFileURL(bundle).href)})`;
      });
      return { contents: constants + contents, loader: 'ts' };
    });
  },
});

/**
 * Bundles files into JavaScript, which start a second faster than TypeScript. Shared modules stay single modules.
 * Returns the paths of the bundles by the paths of the sources from `root`.
 */
export async function bundleFiles(root: string, files: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const outdir = join(bundleFolder(), 'run');
  const bundleOf = (file: string): string => join(outdir, file.replace(/\.ts$/, '.mjs'));
  const loadedElsewhere = new Map(LOADED_ELSEWHERE.map((file) => [join(root, file), bundleOf(file)]));
  await build({
    ...{
      absWorkingDir: root,
      entryPoints: [...files, ...LOADED_ELSEWHERE],
      outdir,
      outbase: root,
      outExtension: { '.js': '.mjs' },
    },
    ...{ bundle: true, splitting: true, packages: 'external', platform: 'node', target: 'node20.19', format: 'esm' },
    ...{ sourcemap: 'linked', sourcesContent: false, keepNames: true, logLevel: 'silent' },
    plugins: [sourceLocation(loadedElsewhere)],
    define: {
      'import.meta.url': 'sourceUrl',
      'import.meta.filename': 'sourceFile',
      'import.meta.dirname': 'sourceFolder',
    },
  });
  return new Map(files.map((file) => [file, bundleOf(file)]));
}
