import { isSvcError, SvcError } from '../errors.ts';
import { invert } from '../schema/invert.ts';
import type { ModelOperation, Raw } from '../schema/operation.ts';
import { MAKES } from '../schema/operation-problems.ts';
import type { Shape } from '../validate-shape.ts';

export interface RawOptions {
  /** Undoes the statement; without it the migration is irreversible on the statement's dialect. */
  readonly down?: string;
  /** A query that returns a row once the statement has taken effect. */
  readonly check?: string;
  /** `false` if the statement cannot run in a transaction. */
  readonly transaction?: boolean;
  /** Whether the statement and its `down` destroy data; by default, each does if it drops, truncates or deletes. */
  readonly destructive?: boolean;
  /** What the statement makes, as operations: they change the model, and the catalog is compared with them. */
  readonly makes?: readonly ModelOperation[];
  /** What `down` makes; by default, what undoes `makes`. Required with `down` if `makes` drops or modifies something. */
  readonly downMakes?: readonly ModelOperation[];
}

/** Why a step has no inverse, and on which dialect; without one, on all. */
export interface NoInverse {
  readonly why: string;
  readonly dialect?: string;
}

export const RAW_OPTIONS: Shape = {
  properties: {
    down: 'string',
    check: 'string',
    transaction: 'boolean',
    destructive: 'boolean',
    makes: MAKES,
    downMakes: MAKES,
  },
};

export function rawOperation(dialect: string, statement: string, options: RawOptions): Raw {
  const { check, makes } = options;
  return {
    ...sharedProperties(dialect, options),
    statement,
    ...(check !== undefined && { check }),
    ...(makes && { makes }),
  };
}

/** The operation that undoes a raw statement. */
export function undoRaw(dialect: string, options: RawOptions): readonly Raw[] | NoInverse {
  const { down, makes, downMakes } = options;
  if (down === undefined) return { why: `The raw ${dialect} statement has no \`down\`.`, dialect };
  const undoes = downMakes ?? (makes && inverseOfMakes(makes));
  return [{ ...sharedProperties(dialect, options), statement: down, ...(undoes && { makes: undoes }) }];
}

function sharedProperties(dialect: string, { transaction, destructive }: RawOptions) {
  return {
    type: 'raw',
    dialect,
    ...(transaction !== undefined && { transaction }),
    ...(destructive !== undefined && { destructive }),
  } as const;
}

function inverseOfMakes(makes: readonly ModelOperation[]): readonly ModelOperation[] {
  try {
    return [...makes].reverse().flatMap((operation) => invert(operation, new Map()) as readonly ModelOperation[]);
  } catch (error) {
    if (!isSvcError(error)) throw error;
    throw new SvcError('migration_invalid', 'The migration cannot be built.', {
      why: 'A raw statement whose `makes` drops or modifies something needs `downMakes` with `down`.',
      cause: error,
    });
  }
}
