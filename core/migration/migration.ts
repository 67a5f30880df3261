import type { NamedField, Operation, OperationType } from '../schema/operation.ts';

/** A migration as it stands in a file, in the history, and as `build()` and `db.schema.*` return it (SPEC 2.12). */
export interface Migration {
  readonly $schema?: string;
  readonly tag: string;
  readonly name: string;
  readonly description?: string;
  /** Automatic migrations carry the properties of their operation: `type`, `collection`, `fields`, `field`. */
  readonly type?: OperationType;
  readonly collection?: string;
  readonly fields?: readonly NamedField[];
  readonly field?: NamedField | string;
  readonly up: readonly Operation[];
  readonly down: readonly Operation[];
  /** Why there is no way back; `down` is then empty. */
  readonly irreversible?: string;
  /** What `down` cannot bring back, or `up` throws away, in words. */
  readonly lossy?: readonly string[];
}
