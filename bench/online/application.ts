// An application: so many writes and reads a second of the table `visits`, each sent at its time, whether the one before has
// ended or not: `node application.ts <url> <rows> <per second> <JSON of added fields>`. It prints "ready", and when its input ends
// the latencies as JSON.
import { clientOf } from './clients.ts';

/** More than wait at once for the longest measured lock. */
const CONNECTIONS = 40;

const [url = '', rowsText = '0', perSecond = '100', addedText = '{}'] = process.argv.slice(2);
const rows = Number(rowsText);

/** The longest and the usual times, in milliseconds, and how many failed. */
export interface Latencies {
  readonly writes: readonly number[];
  readonly reads: readonly number[];
  readonly failures: readonly string[];
}

const client = clientOf(url, CONNECTIONS, JSON.parse(addedText));

const writes: number[] = [];
const reads: number[] = [];
const failures: string[] = [];
const pending = new Set<Promise<void>>();

function timed(list: number[], send: () => Promise<unknown>): void {
  const startedAt = performance.now();
  const one = send()
    .then(() => void list.push(performance.now() - startedAt))
    .catch((error: Error) => void failures.push(error.message))
    .finally(() => pending.delete(one));
  pending.add(one);
}

const anyId = (): number => 1 + Math.floor(Math.random() * rows);
let count = 0;
const tick = (): void => {
  count += 1;
  timed(writes, () => (count % 2 === 0 ? client.update(anyId()) : client.insert(count)));
  timed(reads, () => client.read(anyId()));
};

// All connections are open before anything is measured.
await Promise.all(Array.from({ length: CONNECTIONS }, () => client.read(1)));
const timer = setInterval(tick, 1_000 / Number(perSecond));
process.stdout.write('ready\n');
process.stdin.resume();
process.stdin.once('end', async () => {
  clearInterval(timer);
  await Promise.allSettled(pending);
  process.stdout.write(`${JSON.stringify({ writes, reads, failures } satisfies Latencies)}\n`);
  process.exit();
});
