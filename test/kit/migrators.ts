import * as assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Migration } from '../../core/migration/migration.ts';
import { bundled, bundles } from './bundled.ts';
import type { MigratorOptions } from './migrator.ts';
import { QUICK } from './quick.ts';

export interface Ended {
  /** Null for one that was killed. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly out: string;
  readonly err: string;
}

export interface Migrator {
  readonly child: ChildProcess;
  /** Connected, or ended. */
  readonly ready: Promise<void>;
  readonly ended: Promise<Ended>;
}

let script: Promise<string> | undefined;

/** Starts migrators of these migrations in processes of their own; with `end` before the n-th call to the database. */
export async function migratorsOf(
  dialect: string,
  migrations: readonly Migration[],
): Promise<(url: string, end?: number, options?: MigratorOptions) => Migrator> {
  script ??= bundled('migrator.ts');
  const migrator = await script;
  const file = join(mkdtempSync(join(bundles(), `${dialect}-`)), 'migrations.json');
  writeFileSync(file, JSON.stringify(migrations));
  return (url, end = 0, options = {}) => {
    const args = [QUICK, migrator, dialect, url, file, String(end), JSON.stringify(options)];
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

/** Migrators at once: each ends well, and together they have applied everything once. */
export async function allEndWell(started: readonly Migrator[], migrations: readonly Migration[]): Promise<void> {
  const ended = await Promise.all(started.map(({ ended }) => ended));
  for (const { code, err } of ended) assert.equal(code, 0, err);
  const applied = ended.map(({ out }) => Number(/applied (\d+)/.exec(out)?.[1]));
  assert.equal(
    applied.reduce((sum, one) => sum + one, 0),
    migrations.length,
  );
}
