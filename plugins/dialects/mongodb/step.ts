import type { Statement } from '../../../core/dialect.ts';
import type { Json } from '../../../core/json.ts';
import type { Collection, Field } from '../../../core/schema/model.ts';
import { type Spec, writtenSpec } from './indexes.ts';
import type { Rule } from './rule.ts';
import type { Validator } from './validator.ts';

/**
 * What a statement does, as the journal keeps it. Each says what shall be there afterwards and may run again; values of
 * BSON are extended JSON.
 */
export type Step = { readonly checks?: readonly Check[]; readonly rewritten?: Rewritten } & (
  | {
      readonly do: 'create';
      readonly collection: string;
      readonly options: { readonly [key: string]: Json };
      readonly validator?: Validator;
      readonly indexes: readonly Spec[];
      readonly entry: string;
    }
  | { readonly do: 'drop'; readonly collection: string }
  | { readonly do: 'rename'; readonly collection: string; readonly to: string; readonly entry: string }
  /** Without an entry the model has not arrived there yet. */
  | {
      readonly do: 'validate';
      readonly collection: string;
      readonly validator?: Validator;
      /** Where the options of the table say something of them. */
      readonly validationLevel?: string;
      readonly validationAction?: string;
      readonly entry?: string;
      readonly late?: Late;
    }
  | {
      readonly do: 'createIndexes';
      readonly collection: string;
      readonly indexes: readonly Spec[];
      readonly entry?: string;
    }
  | {
      readonly do: 'dropIndexes';
      readonly collection: string;
      readonly indexes: readonly Spec[];
      readonly entry?: string;
    }
  | { readonly do: 'fill'; readonly collection: string; readonly field: string; readonly value: Filling }
  | { readonly do: 'unset'; readonly collection: string; readonly field: string }
  | { readonly do: 'move'; readonly collection: string; readonly from: string; readonly to: string }
  | { readonly do: 'convert'; readonly collection: string; readonly field: string; readonly change: Conversion }
  | { readonly do: 'command'; readonly command: string }
);

/** What documents without a value get. */
export type Filling =
  | { readonly literal: Json; readonly as: Pick<Field, 'type' | 'items'> }
  | { readonly uuid: true }
  | { readonly expression: Json };

/** Values that the new rule does not let through become what the expression makes of them. */
export interface Conversion {
  /** The new rule, with null. */
  readonly rule: Rule;
  /** Absent where there is no way from the old type to the new one. */
  readonly expression?: Json;
}

/** What others may have written before the validator held: where a check finds any, the moves are made once more. */
export interface Late {
  readonly checks: readonly Check[];
  readonly moves: readonly Step[];
}

/** What must hold before a step begins; else it is refused with the number of documents and a few of their ids. */
export type Check =
  | { readonly lacking: string; readonly atMost?: number; readonly why: string }
  | { readonly both: readonly [string, string]; readonly why: string }
  | { readonly field: string; readonly change: Conversion; readonly why: string }
  | {
      readonly gives: Json;
      readonly field: string;
      readonly rule: Rule;
      readonly required: boolean;
      readonly why: string;
    }
  | { readonly breaks: Validator; readonly why: string }
  | {
      readonly duplicates: Spec;
      /** Fields of its key that may be arrays. */
      readonly lists?: readonly string[];
      readonly of?: Converted;
      readonly why: string;
    };

/** A field whose values go or change, by this step or one behind it: with a rule those alone that it does not let through. */
export interface Rewritten {
  readonly field: string;
  readonly rule?: Rule;
}

/** A field that will have other values. */
export interface Converted {
  readonly field: string;
  readonly change: Conversion;
  /** The index has held so far: values that are converted alone can be the same. */
  readonly held?: true;
}

export function statement(step: Step, destructive = false): Statement {
  return {
    text: textOf(step),
    run: step as unknown as Json,
    transactional: false,
    destructive,
    // A collection that is there may be somebody else's: whether ours was created is for the catalog to say.
    ...(step.do !== 'create' && { idempotent: true }),
  };
}

/** As the shell would have it. */
function textOf(step: Step): string {
  if (step.do === 'command') return `db.runCommand(${step.command})`;
  const at = /^[A-Za-z_]\w*$/.test(step.collection)
    ? `db.${step.collection}`
    : `db.getCollection(${JSON.stringify(step.collection)})`;
  const say = JSON.stringify;
  switch (step.do) {
    case 'create': {
      const options = { ...step.options, ...(step.validator && { validator: step.validator }) };
      const made = `db.createCollection(${[step.collection, options].map((part) => say(part)).join(', ')})`;
      return [made, ...step.indexes.map((spec) => `${at}.createIndex(${indexText(spec)})`)].join('; ');
    }
    case 'drop':
      return `${at}.drop()`;
    case 'rename':
      return `${at}.renameCollection(${say(step.to)})`;
    case 'validate':
      return `db.runCommand(${say({ collMod: step.collection, validator: step.validator ?? {} })})`;
    case 'createIndexes':
      return step.indexes.map((spec) => `${at}.createIndex(${indexText(spec)})`).join('; ') || 'nothing to build';
    case 'dropIndexes':
      return step.indexes.map(({ name }) => `${at}.dropIndex(${say(name)})`).join('; ') || 'nothing to drop';
    case 'fill':
      return `${at}.updateMany(${say({ [step.field]: null })}, ${say([{ $set: { [step.field]: filledText(step.value) } }])})`;
    case 'unset':
      return `${at}.updateMany(${say({ [step.field]: { $exists: true } })}, ${say({ $unset: { [step.field]: '' } })})`;
    case 'move':
      return `${at}.updateMany(${say({ [step.from]: { $exists: true } })}, ${say({ $rename: { [step.from]: step.to } })})`;
    case 'convert':
      return `${at}.updateMany(${say({ $nor: [{ $jsonSchema: { properties: { [step.field]: step.change.rule } } }] })}, ${say([{ $set: { [step.field]: step.change.expression ?? null } }])})`;
  }
}

function indexText(spec: Spec): string {
  const { key, ...options } = writtenSpec(spec);
  return `${JSON.stringify(key)}, ${JSON.stringify(options)}`;
}

function filledText(value: Filling): Json {
  if ('uuid' in value) return 'a UUID each';
  return 'expression' in value ? value.expression : value.literal;
}

/** What the registry keeps of a collection. */
export function entryOf({ fields, indexes, constraints, options }: Collection): string {
  return JSON.stringify({
    fields: [...fields.values()],
    indexes: [...indexes.values()],
    constraints: [...constraints.values()],
    options,
  });
}

export function collectionOfEntry(name: string, entry: string): Collection {
  const { fields, indexes, constraints, options } = JSON.parse(entry) as {
    readonly [K in 'fields' | 'indexes' | 'constraints']: readonly { readonly name: string }[];
  } & Pick<Collection, 'options'>;
  const byName = (list: readonly { readonly name: string }[]) => new Map(list.map((one) => [one.name, one]));
  return {
    name,
    fields: byName(fields),
    indexes: byName(indexes),
    constraints: byName(constraints),
    options,
  } as unknown as Collection;
}
