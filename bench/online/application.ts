// An application: 100 writes and 100 reads a second of the table `visits`, each sent at its time, whether the one before has
// ended or not: `node application.ts <url> <rows>`. It prints "ready", and when its input ends the latencies as JSON.
import { createPool } from 'mysql2/promise';
import pg from 'pg';

const INTERVAL_MS = 10;
/** More than wait at once for the longest measured lock. */
const CONNECTIONS = 40;

const [url = '', rowsText = '0'] = process.argv.slice(2);
const rows = Number(rowsText);

/** The longest and the usual times, in milliseconds, and how many failed. */
export interface Latencies {
  readonly writes: readonly number[];
  readonly reads: readonly number[];
  readonly failures: readonly string[];
}

function open(): (text: string) => Promise<unknown> {
  if (url.startsWith('postgres')) {
    const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
    return (text) => pool.query(text);
  }
  const pool = createPool({ uri: url.replace(/^mariadb:/, 'mysql:'), connectionLimit: CONNECTIONS });
  return (text) => pool.query(text);
}
const send = open();

const writes: number[] = [];
const reads: number[] = [];
const failures: string[] = [];
const pending = new Set<Promise<void>>();

function timed(list: number[], text: string): void {
  const startedAt = performance.now();
  const one = send(text)
    .then(() => void list.push(performance.now() - startedAt))
    .catch((error: Error) => void failures.push(error.message))
    .finally(() => pending.delete(one));
  pending.add(one);
}

const anyId = (): number => 1 + Math.floor(Math.random() * rows);
let count = 0;
const tick = (): void => {
  count += 1;
  timed(
    writes,
    count % 2 === 0
      ? `UPDATE visits SET n = n + 1 WHERE id = ${anyId()}`
      : `INSERT INTO visits (name, n, owner, code, status) VALUES ('new', 1, 1, 'new ${process.pid} ${count}', 'open')`,
  );
  timed(reads, `SELECT name, n FROM visits WHERE id = ${anyId()}`);
};

// All connections are open before anything is measured.
await Promise.all(Array.from({ length: CONNECTIONS }, () => send('SELECT 1')));
const timer = setInterval(tick, INTERVAL_MS);
process.stdout.write('ready\n');
process.stdin.resume();
process.stdin.once('end', async () => {
  clearInterval(timer);
  await Promise.allSettled(pending);
  process.stdout.write(`${JSON.stringify({ writes, reads, failures } satisfies Latencies)}\n`);
  process.exit();
});
