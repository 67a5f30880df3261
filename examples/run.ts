import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * What `npm start` runs: three examples, on the built package. In a terminal one after another, since two of them ask
 * questions; elsewhere all at once, and what each printed is shown in order.
 */

const examples = ['shop', 'refund', 'drop-table'];
const root = join(import.meta.dirname, '..');
/** tsconfig.json maps the package to its sources. */
const env = { ...process.env, TSX_TSCONFIG_PATH: join(root, 'tsconfig.build.json') };
/** Optimizing PGlite's WebAssembly takes longer than an example. */
const options = ['--liftoff-only', '--import', 'tsx'];

async function run(example: string, output: number | 'inherit'): Promise<void> {
  const file = join(root, 'examples', example, 'run.ts');
  const child = spawn(process.execPath, [...options, file, ...process.argv.slice(2)], {
    env,
    stdio: ['inherit', output, output],
  });
  const [status] = await once(child, 'exit');
  if (status !== 0) process.exitCode = 1;
}

if (process.stdin.isTTY === true) {
  for (const example of examples) if (process.exitCode === undefined) await run(example, 'inherit');
} else {
  const folder = mkdtempSync(join(tmpdir(), 'svc-examples-'));
  const started = examples.map((example) => {
    const file = join(folder, example);
    return { file, ended: run(example, openSync(file, 'w')) };
  });
  for (const { file, ended } of started) {
    await ended;
    process.stdout.write(readFileSync(file));
  }
  rmSync(folder, { recursive: true });
}
