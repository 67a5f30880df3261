import type { Statement } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Field } from '../../../core/schema/model.ts';
import type { NamedField } from '../../../core/schema/operation.ts';
import type { Definition } from './definition.ts';

/**
 * What a statement does. Each but `raw` brings a state about and looks first how far that is already so: it goes on
 * from whatever interrupted it.
 */
export type Step =
  | { readonly do: 'create'; readonly table: string; readonly definition: Definition }
  | { readonly do: 'drop'; readonly table: string }
  /**
   * Says in the registry what the table's fields are; with `empty`, only while the table has no items, and with `added`,
   * only where what items have under that name already is of that field.
   */
  | {
      readonly do: 'describe';
      readonly table: string;
      readonly definition: Definition;
      readonly empty?: string;
      readonly added?: NamedField;
    }
  | { readonly do: 'createIndex'; readonly table: string; readonly index: string; readonly definition: Definition }
  | { readonly do: 'dropIndex'; readonly table: string; readonly index: string; readonly definition: Definition }
  /** Reads every item and refuses what the move that follows could not do. */
  | { readonly do: 'check'; readonly table: string; readonly move: Move }
  | { readonly do: 'move'; readonly table: string; readonly move: Move }
  | { readonly do: 'raw'; readonly action: string; readonly input: Json };

/** What happens to one field of every item. */
export type Move =
  /** Puts the field's default where it has no value. */
  | { readonly kind: 'fill'; readonly field: NamedField }
  | { readonly kind: 'remove'; readonly field: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  /** Writes each value anew as the field's new definition wants it; in a key every value has to stay as it is. */
  | {
      readonly kind: 'convert';
      readonly field: NamedField;
      /** What the values were until now. */
      readonly from: Pick<Field, 'type' | 'items'>;
      readonly key?: true;
    };

export function statement(text: string, step: Step, { destructive = false } = {}): Statement {
  return {
    text,
    run: step as unknown as Json,
    transactional: false,
    destructive,
    // A table that is there may be somebody else's: whether ours was created is for the catalog to say.
    ...(step.do !== 'raw' && step.do !== 'create' && { idempotent: true }),
  };
}

/** The step of a statement that this dialect compiled. */
export const stepOf = ({ run }: Pick<Statement, 'run'>): Step => run as unknown as Step;
