import type { Statement } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Facts } from '../../sql/grammar.ts';
import { SCHEMA } from '../../sql/text.ts';
import { quote } from './quote.ts';
import type { Violating } from './violating.ts';

/**
 * An ALTER TABLE of which only the catalog can tell what exactly to send: it is asked under the lock, right before.
 * JSON, because the journal keeps it.
 */
export interface AskedAlter {
  readonly table: string;
  readonly clauses: readonly string[];
  /**
   * Refused as `data_violates` where a row meets the condition. What goes `online` needs no such look: there the server
   * refuses the rows itself.
   */
  readonly refused?: { readonly rows: string; readonly why: string; readonly online?: true };
  /** Refused as `data_violates` where a word of an enum is none of a column with these lines in its definition. */
  readonly words?: { readonly column: string; readonly lines: readonly string[] };
  /** What the server refuses itself: asked before the first step of a run of several. */
  readonly violating?: readonly Violating[];
  readonly modify?: Modify;
  /** Foreign keys may need an index in its place. */
  readonly dropsIndexes?: readonly string[];
  /** Its automatic index goes with it. */
  readonly dropsForeignKey?: string;
  /** A check that the server may have given another name. */
  readonly dropsCheck?: string;
  /** The check of an array in the table's own constraints, dropped and added where the server lets none stand under a change. */
  readonly arrayCheck?: { readonly column: string; readonly drop: boolean; readonly add: string };
}

/** A column's new definition; what is absent stays as the catalog has it. */
export interface Modify {
  readonly column: string;
  readonly type?: string;
  readonly required?: boolean;
  /** The text of a default, null for none. */
  readonly default?: string | null;
  readonly numbered?: boolean;
  /** What belongs to the column beside its type, where the type is new. */
  readonly check?: string;
}

/** Fills a column where it has no value. */
export interface AskedFill {
  readonly table: string;
  readonly fill: string;
  readonly with: string;
}

export type Asked = AskedAlter | AskedFill;

export function askedAlter(ask: AskedAlter, facts: Facts = {}, shown: readonly string[] = ask.clauses): Statement {
  const plain = (clauses: readonly string[]) => clauses.map((clause) => clause.replaceAll(SCHEMA, ''));
  const text = `ALTER TABLE ${quote(ask.table)} ${plain(shown).join(', ')}`;
  return asked(text, { ...ask, clauses: plain(ask.clauses) }, facts);
}

export function askedFill(ask: AskedFill): Statement {
  const column = quote(ask.fill);
  return asked(`UPDATE ${quote(ask.table)} SET ${column} = ${ask.with} WHERE ${column} IS NULL`, ask, {
    idempotent: true,
  });
}

function asked(text: string, ask: Asked, facts: Facts): Statement {
  return { text, run: ask as unknown as Json, transactional: false, destructive: false, ...facts };
}
