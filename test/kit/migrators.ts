import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Migration } from '../../core/migration/migration.ts';
import { bundleFolder, bundleScript } from './bundle.ts';
import type { MigratorOptions } from './migrator.ts';
import { LIFTOFF_ONLY } from './node-flags.ts';

export interface MigratorResult {
  /** Null if it was killed. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface Migrator {
  readonly child: ChildProcess;
  /** Resolves when it is connected or has ended. */
  readonly ready: Promise<void>;
  readonly ended: Promise<MigratorResult>;
}

let script: Promise<string> | undefined;

/** Returns a function that starts a migrator process, which is killed before the n-th call to the database if `end` is n. */
export async function prepareMigrators(
  dialect: string,
  migrations: readonly Migration[],
): Promise<(url: string, end?: number, options?: MigratorOptions) => Migrator> {
  script ??= bundleScript('migrator.ts');
  const migrator = await script;
  const file = join(mkdtempSync(join(bundleFolder(), `${dialect}-`)), 'migrations.json');
  writeFileSync(file, JSON.stringify(migrations));
  return (url, end = 0, options = {}) => {
    const args = [LIFTOFF_ONLY, migrator, dialect, url, file, String(end), JSON.stringify(options)];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    const ready = new Promise<void>((resolve) => {
      child.stdout.on('data', (chunk) => {
        out += chunk;
        if (out.includes('ready')) resolve();
      });
      child.on('exit', () => resolve());
    });
    const ended = once(child, 'close').then(([code, signal]) => ({ code, signal, out, err }));
    return { child, ready, ended };
  };
}

/** Asserts that concurrent migrators succeed, and that together they apply every migration once. */
export async function assertAllSucceed(started: readonly Migrator[], migrations: readonly Migration[]): Promise<void> {
  const ended = await Promise.all(started.map(({ ended }) => ended));
  for (const { code, err } of ended) assert.equal(code, 0, err);
  const applied = ended.map(({ out }) => Number(/applied (\d+)/.exec(out)?.[1]));
  assert.equal(
    applied.reduce((sum, one) => sum + one, 0),
    migrations.length,
  );
}
