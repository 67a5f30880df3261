import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, type Metafile } from 'esbuild';
import manifest from './package.json' with { type: 'json' };

/** Builds dist/: the entries of package.json as ESM, what they import when it is used as chunks, and declarations. */

const root = dirname(fileURLToPath(import.meta.url));
const dist = join(root, 'dist');

/** A dependency for the sake of its types, which our declarations name. */
const BUNDLED = ['tapable'];
const installed = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });

rmSync(dist, { recursive: true, force: true });
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: ['cli/main.ts', 'config/sdk.ts', 'config/define.ts'],
  outbase: '.',
  outdir: 'dist',
  chunkNames: 'chunks/[name]-[hash]',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  mainFields: ['module', 'main'],
  // What every command imports is bundled: that saves some 5 to 10 ms of its start. What is imported when used is not.
  external: installed.filter((name) => !BUNDLED.includes(name)),
  banner: {
    js: "import { createRequire as bundledRequire } from 'node:module'; const require = bundledRequire(import.meta.url);",
  },
  logLevel: 'warning',
  metafile: true,
});
chmodSync(join(dist, 'cli', 'main.js'), 0o755);
copyFileSync(join(root, 'config', 'schema.json'), join(dist, 'schema.json'));
writeFileSync(join(dist, 'THIRD-PARTY.txt'), notices(metafile));

const tsc = join(root, 'node_modules', 'typescript', 'bin', 'tsc');
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json'], { cwd: root, stdio: 'inherit' });
for (const name of readdirSync(dist, { recursive: true, encoding: 'utf8' })) {
  if (!name.endsWith('.d.ts')) continue;
  // TypeScript rewrites the extension of an import in JavaScript only.
  const text = readFileSync(join(dist, name), 'utf8');
  writeFileSync(join(dist, name), text.replace(/((?:from|import\()\s*['"]\.[^'"]+)\.ts(['"])/g, '$1.js$2'));
}

/** The licences of what is bundled ask to be passed on. */
function notices({ inputs }: Metafile): string {
  const packages = new Set(
    Object.keys(inputs).flatMap((file) => /^(node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1] ?? []),
  );
  return [...packages].sort().map(notice).join('\n\n');
}

function notice(folder: string): string {
  const { name, version, license } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'));
  const file = readdirSync(join(root, folder)).find((entry) => /^licen[cs]e/i.test(entry));
  return `${name} ${version}, ${license}\n${file === undefined ? '' : readFileSync(join(root, folder, file), 'utf8')}`;
}
