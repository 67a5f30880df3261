import type { Statement } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { Registered } from './registry.ts';

/** What a statement does, as the journal keeps it. */
export type Run = Ddl | Note | Copy | Fill | Words | Settle;

/** One statement of CQL that changes the schema. */
export interface Ddl {
  readonly kind: 'ddl';
  readonly cql: string;
  /** What the catalog shows once it has taken effect: decides where an answer was lost. */
  readonly effect: Effect;
  readonly table: string;
  /** What the registry says from before the statement on; behind one that drops the table it says nothing. */
  readonly registered?: Registered;
  readonly creates?: true;
  /** The column may be there already where an attempt before this one was interrupted. */
  readonly resumes?: true;
  /** Nothing of this may be in the table: the field is required and has no default. */
  readonly empty?: true;
  /** The column whose values the new one is to have: what it is has to be what svc reads it as. */
  readonly copies?: string;
  /** Rows whose values could not become those of another field are looked for first. */
  readonly converted?: Conversion;
  /** Done once more before the column that was copied is dropped. */
  readonly copied?: Copy;
}

export type Effect =
  | { readonly table: false }
  | { readonly columns: Readonly<Record<string, string | null>> }
  | { readonly index: string; readonly target: string | null };

/** What only the registry knows changes; rows that would not fit are looked for first. */
export interface Note {
  readonly kind: 'note';
  readonly table: string;
  readonly registered: Registered;
  readonly narrowed?: Field;
}

export interface Conversion {
  readonly from: Field;
  readonly to: Field;
}

/** Every value of one column into another, with its time of writing and what is left of its time to live. */
export interface Copy {
  readonly kind: 'copy';
  readonly table: string;
  readonly key: readonly string[];
  readonly from: string;
  readonly to: string;
  /** The type is a list: its times cannot be kept. */
  readonly list: boolean;
  /** Absent where values stay as they are. */
  readonly converted?: Conversion;
}

/** A default into the rows that have no value. */
export interface Fill {
  readonly kind: 'fill';
  readonly table: string;
  readonly key: readonly string[];
  readonly field: Field;
}

/** Words of a user. */
export interface Words {
  readonly kind: 'words';
  readonly cql: string;
}

/** What a change of the schema that took effect is still waited for. */
export interface Settle {
  readonly kind: 'settle';
  /** Built on every node. */
  readonly index?: string;
}

/** None can be in a transaction: Cassandra has none. */
export function statement(
  text: string,
  run: Run,
  facts: Partial<Pick<Statement, 'destructive' | 'idempotent' | 'check'>> = {},
): Statement {
  const settle = settleOf(run);
  return {
    text,
    run: run as unknown as Json,
    transactional: false,
    destructive: false,
    ...(settle && { settle: settle as unknown as Json }),
    ...facts,
  };
}

function settleOf(run: Run): Settle | undefined {
  if (run.kind === 'words') return { kind: 'settle' };
  if (run.kind !== 'ddl') return undefined;
  const { effect } = run;
  return { kind: 'settle', ...('index' in effect && effect.target !== null && { index: effect.index }) };
}
