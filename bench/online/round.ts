import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { isSvcError } from '../../core/errors.ts';
import type { Latencies } from './application.ts';

/** Before and after the change. */
const MARGIN_MS = process.argv.includes('--quick') ? 300 : 1_000;

export interface Load {
  readonly url: string;
  readonly rows: number;
  /** Writes, and as many reads. */
  readonly perSecond: number;
  /** What the application writes into new rows in addition, on engines that fill in no values. */
  readonly added?: Readonly<Record<string, string | boolean>>;
}

export interface Round extends Latencies {
  readonly tookMs: number;
  /** Why it did not run. */
  readonly refused?: string;
}

/** The application before, during and after a change. */
export async function measure({ url, rows, perSecond, added = {} }: Load, change: () => Promise<void>): Promise<Round> {
  const program = fileURLToPath(new URL('./application.ts', import.meta.url));
  const application = spawn(
    process.execPath,
    ['--import', 'tsx', program, url, String(rows), String(perSecond), JSON.stringify(added)],
    { stdio: ['pipe', 'pipe', 'inherit'] },
  );
  let out = '';
  application.stdout.on('data', (chunk) => {
    out += chunk;
  });
  await once(application.stdout, 'data');
  await wait(MARGIN_MS);
  const startedAt = performance.now();
  const refused = await change().then(
    () => undefined,
    (error) => {
      console.error(String(error.message));
      return isSvcError(error) ? `refused, ${error.code}` : 'failed';
    },
  );
  const tookMs = performance.now() - startedAt;
  await wait(MARGIN_MS);
  application.stdin.end();
  await once(application, 'close');
  const latencies = JSON.parse(out.split('\n')[1] ?? '') as Latencies;
  return { ...latencies, tookMs, ...(refused !== undefined && { refused }) };
}

export const longest = (values: readonly number[]): number => Math.max(0, ...values);

export function cell({ writes, reads, tookMs, refused, failures }: Round): string {
  if (refused !== undefined) return refused;
  const failed = failures.length > 0 ? `, ${failures.length} FAILED` : '';
  return `${longest(writes).toFixed(0)}, ${longest(reads).toFixed(0)} (${(tookMs / 1000).toFixed(1)} s${failed})`;
}
