import type { Plugin } from '../../core/kernel.ts';
import type { UnderTest } from './suite.ts';

/** A broker, and the server that it connects to. */
export interface BrokerUnderTest extends UnderTest {
  /** The plugin that its package exports. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the broker. */
  readonly type: string;
  /**
   * The module whose default export is `plugin`: a file URL, or the name of a package. One case starts a process that loads it with
   * the Node options of this one. Without it, that case uses two instances in this process.
   */
  readonly module?: URL | string | undefined;
  /** A real server. The suite connects the broker to it through a proxy that it disconnects and freezes. */
  readonly server: { readonly host: string; readonly port: number };
  /** The options in `brokers` other than `type`, for a server at this address. */
  options(host: string, port: number): Readonly<Record<string, unknown>>;
  /** Texts in the options that must not occur in an error or warning, such as the password. */
  readonly secrets: readonly string[];
  /** How long the suite waits for a message, in milliseconds. Default 60,000. Longer than a lease and than two heartbeats. */
  readonly patienceMs?: number;
  /**
   * How long a message belongs to one process before the server delivers it to another, in milliseconds, if the server has such
   * leases.
   */
  readonly leaseMs?: number;
  /**
   * Restarts the server at the same address, and resolves when it accepts connections. Without it, nothing checks that messages survive
   * that. `openClient` then sends durable messages.
   */
  restart?(): Promise<void>;
  /** Opens a client of the server that is independent of the broker. */
  openClient(): Promise<BrokerClient>;
}

export interface BrokerClient {
  /** Subscribes to events of a name. The returned function lists the messages so far, including any that the server kept. */
  listen(event: string): Promise<() => readonly BrokerMessage[]>;
  /**
   * Sends a message with these bytes to a queue. Returns false if the queue does not exist; on a server that creates it for the first
   * message, always true.
   */
  send(queue: string, body: Uint8Array): Promise<boolean>;
  /**
   * Removes and returns the dead letters of a queue. Called again and again until one is there: what arrives between two calls, or
   * after the last, must not be lost.
   */
  takeDeadLetters(queue: string): Promise<readonly string[]>;
  /**
   * Makes the server, which responds as before, refuse events of this name until `close`: by a full queue that takes no more, a
   * key of another type, a missing permission. If the server cannot be made to, skip the case about it.
   */
  refuse(event: string): Promise<void>;
  /** Deletes these events and queues from the server, or empties what cannot be deleted, and disconnects. */
  close(used: { readonly events: readonly string[]; readonly queues: readonly string[] }): Promise<void>;
}

export interface BrokerMessage {
  readonly body: string;
  /** The id of the event, wherever the broker stores it. */
  readonly id: string | undefined;
  /** Milliseconds for which the server keeps the message, wherever the broker stores them; undefined if it does not. */
  readonly expiresInMs: number | undefined;
}
