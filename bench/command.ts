import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Command {
  readonly program?: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
}

export interface Finished {
  /** Milliseconds from the start of the process to its end. */
  readonly ms: number;
  readonly output: string;
}

/**
 * Minimal, so that the caller's environment does not affect the results: NODE_EXTRA_CA_CERTS alone doubles the start of
 * Node, and so the baseline of every ratio.
 */
const ENVIRONMENT: NodeJS.ProcessEnv = process.argv.includes('--inherit-env')
  ? process.env
  : { PATH: process.env.PATH, HOME: process.env.HOME };

/** Runs a process until it exits. Its output goes to a file, so that this process does no work during the measurement. */
export async function run({
  program = process.execPath,
  args,
  cwd,
  env,
  timeoutMs = 120_000,
}: Command): Promise<Finished> {
  const path = join(tmpdir(), `svc-bench-${process.pid}.log`);
  const out = openSync(path, 'w');
  try {
    const started = performance.now();
    const child = spawn(program, args, {
      cwd,
      env: { ...ENVIRONMENT, NO_COLOR: '1', CI: '1', PGSSLMODE: 'disable', ...env },
      stdio: ['ignore', out, out],
    });
    const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
    const [code, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (...result) => resolve(result));
    });
    const ms = performance.now() - started;
    clearTimeout(timer);
    const output = readFileSync(path, 'utf8');
    if (code !== 0) throw new Error(`exit ${code ?? signal}: ${output.trim().slice(-400)}`);
    return { ms, output };
  } finally {
    closeSync(out);
    rmSync(path);
  }
}
