import type { Engine } from './engine.ts';
import type { Machine } from './machine.ts';

/** Reports progress to the waiting user, such as "starting on port 3306". */
export type ReportProgress = (progress: string) => void;

/** One way to get a server of an engine. */
export interface Source {
  /** As in "from Debian's packages". */
  readonly from: string;
  /** Why it cannot be used on this machine, or undefined. */
  whyUnavailable(): string | undefined;
  /** Does the slow work (downloads, installation) into the cache. */
  prepare(report: ReportProgress): Promise<Prepared>;
}

interface Prepared {
  /** Parent of the servers' folders. */
  readonly folder: string;
  /** Starts a server and returns its URL as soon as it answers. */
  start(launch: Launch): Promise<string>;
}

interface SpawnOptions {
  /** The user to run as, if this process is root. */
  readonly as?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** What a source needs to start one server. */
export interface Launch {
  /** The server's own empty folder; removed when the server has stopped. */
  readonly folder: string;
  readonly report: ReportProgress;
  /** The first of these ports that is free, else another one; a restarted server gets its previous port. */
  port(...defaults: readonly number[]): Promise<number>;
  /** Runs a program until it exits; throws the last lines of its output if it fails. */
  run(machine: Machine, file: string, args: readonly string[], options?: SpawnOptions): Promise<void>;
  /** Starts a process that outlives this one and records it in the state file before returning. */
  spawn(
    machine: Machine,
    file: string,
    args: readonly string[],
    options?: SpawnOptions & {
      readonly signal?: NodeJS.Signals;
      /** The folder of its data, which may be in memory. */
      readonly data?: string;
    },
  ): void;
  /** Waits until a server of that engine answers at the URL; throws at once if its process has ended. */
  waitForAnswer(engine: Engine, url: string): Promise<void>;
  /** Runs the service of compose.yaml in its own project. */
  compose(service: string, port: number): Promise<void>;
}
