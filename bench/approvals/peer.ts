import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** How often the effect happened, and what whoever decided was told. */
export interface Fault {
  readonly ran: string;
  readonly told: string;
}

export interface Figures {
  /** Milliseconds until the run is stored and waits, and from the decision to the handler. */
  readonly start: Middle;
  readonly wake: Middle;
  /** Created, decided and finished in a second, 16 at once. */
  readonly rate: number;
  /** Of a waiting run, in the database with its indexes. */
  readonly bytes: number;
  /** Bytes of heap and buffers of a process in which 1,000 wait. */
  readonly memory: number;
  readonly list: { readonly ms: number; readonly listed: number; readonly waiting: number };
}

interface Middle {
  readonly p50: number;
  readonly p99: number;
}

const HOST = fileURLToPath(new URL('./peers/host.mjs', import.meta.url));
const LONGEST_MS = 1_800_000;

/** Runs a contender in a process of its own and gives what it found. */
export async function runHost<T>(peer: string, args: readonly string[]): Promise<T> {
  const { code, output } = await ended(peer, args);
  if (code !== 0) throw new Error(`${peer} ${args.at(1)}: exit ${code}: ${output.slice(-1_000)}`);
  return JSON.parse(output.trimEnd().split('\n').at(-1) ?? '') as T;
}

/** A process that dies in its handler; one that does not is a mistake of the bench. */
export async function runVictim(peer: string, url: string, moment: 'before' | 'after'): Promise<void> {
  const { signal, output } = await ended(peer, [url, 'victim', moment, `victim-${moment}`]);
  if (signal !== 'SIGKILL') throw new Error(`${peer} did not die ${moment} its effect: ${output.slice(-1_000)}`);
}

async function ended(peer: string, args: readonly string[]) {
  const child = spawn(process.execPath, ['--expose-gc', '--no-deprecation', HOST, peer, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const late = setTimeout(() => child.kill('SIGTERM'), LONGEST_MS);
  let output = '';
  for (const stream of [child.stderr, child.stdout]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(late);
  return { code, signal, output };
}
