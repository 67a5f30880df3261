import type { Engine } from './engine.ts';
import type { Machine } from './machine.ts';

/** Says what is being done, in a few words, to whoever waits. */
export type Tell = (progress: string) => void;

/** One way to come by a server of an engine. */
export interface Source {
  /** As in "from Debian's packages". */
  readonly from: string;
  /** Why it cannot be had here, or nothing. */
  missing(): string | undefined;
  /** Does what takes long, into the cache. */
  prepare(tell: Tell): Promise<Prepared>;
}

export interface Prepared {
  /** In which servers may have their folders. */
  readonly folder: string;
  /** Starts a server and gives its URL as soon as it answers. */
  start(launch: Launch): Promise<string>;
}

export interface SpawnOptions {
  /** A user of that machine to be, where we are root. */
  readonly as?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

/** A server that is about to start. */
export interface Launch {
  /** Empty and its own; removed when it has stopped. */
  readonly folder: string;
  readonly tell: Tell;
  /** The first of these that is free, else another one; a server that is started again gets the port it had. */
  port(...usual: readonly number[]): Promise<number>;
  /** Runs something to its end; throws the last of what it said if it fails. */
  run(machine: Machine, file: string, args: readonly string[], options?: SpawnOptions): Promise<void>;
  /** Starts a process that outlives us; it is in the state file before this returns. */
  spawn(
    machine: Machine,
    file: string,
    args: readonly string[],
    options?: SpawnOptions & { readonly signal?: NodeJS.Signals },
  ): void;
  /** Waits until a server of that engine answers there; throws at once when a process has ended. */
  answers(engine: Engine, url: string): Promise<void>;
  /** Runs the service of compose.yaml in a project of its own. */
  compose(service: string, port: number): Promise<void>;
}
