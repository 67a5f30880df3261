import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** How often the effect happened, and the response to the decision. */
export interface Fault {
  readonly ran: string;
  readonly response: string;
}

export interface Figures {
  /** Milliseconds until the run is stored and waits, and from the decision to the start of the handler. */
  readonly start: Percentiles;
  readonly wake: Percentiles;
  /** Runs created, decided and finished per second, 16 concurrently. */
  readonly rate: number;
  /** Bytes of a waiting run in the database, including indexes. */
  readonly bytes: number;
  /** Bytes of heap and buffers of 1,000 waiting runs in one process. */
  readonly memory: number;
  /** `listed` is missing where nothing lists. */
  readonly list: { readonly ms: number; readonly listed?: number; readonly waiting: number };
}

interface Percentiles {
  readonly p50: number;
  readonly p99: number;
}

const HOST = fileURLToPath(new URL('./peers/host.mjs', import.meta.url));
const TIMEOUT_MS = 1_800_000;

/** Runs a contender in its own process and returns its results. */
export async function runHost<T>(peer: string, args: readonly string[]): Promise<T> {
  const { code, output } = await runPeer(peer, args);
  if (code !== 0) throw new Error(`${peer} ${args.at(1)}: exit ${code}: ${output.slice(-1_000)}`);
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as T;
}

/** Runs a process that kills itself in its handler; throws if it survives. */
export async function runVictim(peer: string, url: string, moment: 'before' | 'after'): Promise<void> {
  const { signal, output } = await runPeer(peer, [url, 'victim', moment, `victim-${moment}`]);
  if (signal !== 'SIGKILL') throw new Error(`${peer} did not die ${moment} its effect: ${output.slice(-1_000)}`);
}

async function runPeer(peer: string, args: readonly string[]) {
  const child = spawn(process.execPath, ['--expose-gc', '--no-deprecation', HOST, peer, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const timer = setTimeout(() => child.kill('SIGTERM'), TIMEOUT_MS);
  let output = '';
  for (const stream of [child.stderr, child.stdout]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  return { code, signal, output };
}
