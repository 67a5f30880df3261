import type { Seal, SealHeader } from './seal.ts';

/**
 * Keeps the seals of the audit where those who can write to the database cannot change them. Every seal is written at
 * least once, in order. @experimental
 */
export interface SealSink {
  /**
   * The last seal that was written; undefined before the first. Then those after it are written, and a store whose seals
   * are others is found at once. Without it, a seal is written again only if no earlier `write` succeeded.
   */
  last?(): Promise<SealHeader | undefined>;
  /** Throws if the seal may be lost. */
  write(seal: Seal, signal: AbortSignal): Promise<void>;
  /** Every seal, oldest first, for `svc approvals verify`. Without it, the seals are read from the store. */
  read?(): AsyncIterable<Seal>;
}

/** `options`: those of the configuration, and `root`, the folder of the configuration. @experimental */
export type SealSinkFactory = (options: Readonly<Record<string, unknown>> & { readonly root: string }) => SealSink;
