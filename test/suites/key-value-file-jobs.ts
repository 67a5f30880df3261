import { existsSync, writeFileSync, writeSync } from 'node:fs';
import type { KeyValueFile } from '../../plugins/dialects/shared/key-value/embedded.ts';
import { waitUntil } from './wait-until.ts';

const OPEN_MS = 30_000;
/** How long a transaction waits for one of another process that is ready to begin it. */
const OTHER_MS = 2_000;

export const COUNTER = 'counter';
/** So many writes, and so long, that a process can be killed between them. */
export const FILLED_KEYS = Array.from({ length: 4_000 }, (_, index) => `key ${index}`);
const longText = (text: string): string => `${text} ${'x'.repeat(200)}`;

const report = (): void => void writeSync(1, '.');
const readyFile = (done: string): string => `${done}.ready`;
const pause = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** Blocks this process. */
function waitForFile(file: string, atMostMs: number): void {
  const deadline = performance.now() + atMostMs;
  while (!existsSync(file) && performance.now() < deadline) pause(5);
}

type Open = () => Promise<KeyValueFile>;

/** What another process does with a file. A byte on its stdout reports that `work` has made its writes or its read. */
export const jobs = {
  /**
   * Writes the value of every key in one transaction, and kills this process halfway if `dies`. Returns the milliseconds from the
   * end of `work` to that of the transaction. The file stays open: the process is killed.
   */
  async fill(open: Open, text: string, dies: string | undefined) {
    const file = await open();
    let workedAt = 0;
    await file.transaction(({ put }) => {
      for (const [index, key] of FILLED_KEYS.entries()) {
        put(key, longText(text));
        if (dies !== undefined && index > FILLED_KEYS.length / 2) process.kill(process.pid, 'SIGKILL');
      }
      report();
      workedAt = performance.now();
    });
    return performance.now() - workedAt;
  },

  /** Adds one to the counter. Between its read and its write, waits for the other process, which in a right engine waits for it. */
  async addSlowly(open: Open, done: string) {
    const file = await open();
    await file.transaction(({ get, put }) => {
      const value = Number(get(COUNTER) ?? 0);
      report();
      waitForFile(readyFile(done), OPEN_MS);
      waitForFile(done, OTHER_MS);
      put(COUNTER, String(value + 1));
    });
    await file.close();
  },

  /** Adds one to the counter as soon as the engine lets it, and then creates the file `done`. */
  async add(open: Open, done: string) {
    writeFileSync(readyFile(done), '');
    const file = await open();
    let failure: unknown;
    const attempt = async () => {
      try {
        await file.transaction(({ get, put }) => put(COUNTER, String(Number(get(COUNTER) ?? 0) + 1)));
        return true;
      } catch (error) {
        failure = error;
        return false;
      }
    };
    await waitUntil(attempt, '', OPEN_MS).catch(() => {
      throw failure;
    });
    writeFileSync(done, '');
    await file.close();
  },
};

export type FileJob = keyof typeof jobs;

/** Opens a file as soon as no other process has it. Throws the error of the last attempt. */
export async function openWhenFree(open: (file: string) => Promise<KeyValueFile>, path: string): Promise<KeyValueFile> {
  const deadline = Date.now() + OPEN_MS;
  for (;;) {
    try {
      return await open(path);
    } catch (error) {
      if (Date.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }
}
