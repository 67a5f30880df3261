import type { Segment, Statement } from '../../../../core/dialect.ts';
import type { Json } from '../../../../core/json.ts';
import type { Field } from '../../../../core/schema/model.ts';
import { createIndexesSpec, type IndexSpec } from './indexes.ts';
import type { FieldRule, Validator } from './validator.ts';

/**
 * What a statement does, as stored in the journal. A step describes the state it produces and may run again; BSON values
 * are extended JSON.
 */
export type MongoStep = { readonly checks?: readonly Precondition[]; readonly rewritten?: RewrittenField } & (
  | {
      readonly kind: 'create';
      readonly collection: string;
      readonly options: { readonly [key: string]: Json };
      readonly validator?: Validator;
      readonly indexes: readonly IndexSpec[];
      readonly entry: string;
    }
  | { readonly kind: 'drop'; readonly collection: string }
  | { readonly kind: 'rename'; readonly collection: string; readonly to: string; readonly entry: string }
  /** Without an entry, more steps of the operation follow. */
  | {
      readonly kind: 'validate';
      readonly collection: string;
      readonly validator?: Validator;
      /** From the options of the table. */
      readonly validationLevel?: string;
      readonly validationAction?: string;
      readonly entry?: string;
      readonly catchUp?: CatchUp;
      /** Only the registry changes: the collection cannot have a validator. */
      readonly registryOnly?: true;
    }
  | {
      readonly kind: 'createIndexes';
      readonly collection: string;
      readonly indexes: readonly IndexSpec[];
      readonly entry?: string;
    }
  | {
      readonly kind: 'dropIndexes';
      readonly collection: string;
      readonly indexes: readonly IndexSpec[];
      readonly entry?: string;
    }
  | { readonly kind: 'fill'; readonly collection: string; readonly field: string; readonly value: DefaultValue }
  | { readonly kind: 'unset'; readonly collection: string; readonly field: string }
  | { readonly kind: 'move'; readonly collection: string; readonly from: string; readonly to: string }
  | { readonly kind: 'convert'; readonly collection: string; readonly field: string; readonly change: Conversion }
  | { readonly kind: 'createView'; readonly collection: string; readonly command: Validator }
  | { readonly kind: 'changeView'; readonly collection: string; readonly viewOn: Json; readonly pipeline: Json }
  | { readonly kind: 'dropView'; readonly collection: string }
  | { readonly kind: 'raw'; readonly command: string }
);

export type MongoStatement = Statement<MongoStep>;
export type MongoSegment = Segment<MongoStep>;

/** The value of a field for documents without one. */
export type DefaultValue =
  | { readonly literal: Json; readonly as: Pick<Field, 'type' | 'items'> }
  | { readonly uuid: true }
  | { readonly expression: Json };

/** Converts values that violate the new rule. */
export interface Conversion {
  /** The new rule, which also allows null. */
  readonly rule: FieldRule;
  /** Absent if the old type cannot be converted to the new one. */
  readonly expression?: Json;
}

/** Steps to repeat if documents written before the validator was set violate a check. */
export interface CatchUp {
  readonly checks: readonly Precondition[];
  readonly moves: readonly MongoStep[];
}

/** Checked before a step; the error names the number of violating documents and some of their ids. */
export type Precondition =
  | { readonly missingField: string; readonly atMost?: number; readonly why: string }
  | { readonly both: readonly [string, string]; readonly why: string }
  | { readonly field: string; readonly change: Conversion; readonly why: string }
  | {
      readonly computed: Json;
      readonly field: string;
      readonly rule: FieldRule;
      readonly required: boolean;
      readonly why: string;
    }
  | { readonly mustMatch: Validator; readonly why: string }
  | {
      readonly duplicates: IndexSpec;
      /** Fields of its key that may be arrays. */
      readonly arrayFields?: readonly string[];
      readonly converted?: ConvertedField;
      readonly why: string;
    };

/** A field that this step or a later one removes or changes: with a rule, only in documents that violate it. */
export interface RewrittenField {
  readonly field: string;
  readonly rule?: FieldRule;
}

/** A field whose values are converted. */
export interface ConvertedField {
  readonly field: string;
  readonly change: Conversion;
  /** The index exists already: only converted values can be duplicates. */
  readonly indexExists?: true;
}

export function stepStatement(step: MongoStep, destructive = false): MongoStatement {
  return {
    text: stepText(step),
    run: step,
    transactional: false,
    destructive,
    // A collection that exists may be another program's: the catalog shows whether this step created it.
    ...(step.kind !== 'create' && { idempotent: true }),
  };
}

/** The step in the syntax of mongosh. */
function stepText(step: MongoStep): string {
  if (step.kind === 'raw') return `db.runCommand(${step.command})`;
  const target = /^[A-Za-z_]\w*$/.test(step.collection)
    ? `db.${step.collection}`
    : `db.getCollection(${JSON.stringify(step.collection)})`;
  const json = JSON.stringify;
  switch (step.kind) {
    case 'create': {
      const options = { ...step.options, ...(step.validator && { validator: step.validator }) };
      const create = `db.createCollection(${[step.collection, options].map((part) => json(part)).join(', ')})`;
      return [create, ...step.indexes.map((spec) => `${target}.createIndex(${indexText(spec)})`)].join('; ');
    }
    case 'drop':
      return `${target}.drop()`;
    case 'rename':
      return `${target}.renameCollection(${json(step.to)})`;
    case 'createView':
      return `db.runCommand(${json(step.command)})`;
    case 'changeView':
      return `db.runCommand(${json({ collMod: step.collection, viewOn: step.viewOn, pipeline: step.pipeline })})`;
    case 'dropView':
      return `${target}.drop()`;
    case 'validate':
      if (step.registryOnly) return `// the fields of ${json(step.collection)}, which only svc knows`;
      return `db.runCommand(${json({
        collMod: step.collection,
        validator: step.validator ?? {},
        validationLevel: step.validationLevel,
        validationAction: step.validationAction,
      })})`;
    case 'createIndexes':
      return step.indexes.map((spec) => `${target}.createIndex(${indexText(spec)})`).join('; ') || 'nothing to create';
    case 'dropIndexes':
      return step.indexes.map(({ name }) => `${target}.dropIndex(${json(name)})`).join('; ') || 'nothing to drop';
    case 'fill':
      return `${target}.updateMany(${json({ [step.field]: null })}, ${json([{ $set: { [step.field]: defaultText(step.value) } }])})`;
    case 'unset':
      return `${target}.updateMany(${json({ [step.field]: { $exists: true } })}, ${json({ $unset: { [step.field]: '' } })})`;
    case 'move':
      return `${target}.updateMany(${json({ [step.from]: { $exists: true } })}, ${json({ $rename: { [step.from]: step.to } })})`;
    case 'convert':
      return `${target}.updateMany(${json({ $nor: [{ $jsonSchema: { properties: { [step.field]: step.change.rule } } }] })}, ${json([{ $set: { [step.field]: step.change.expression ?? null } }])})`;
  }
}

function indexText(spec: IndexSpec): string {
  const { key, ...options } = createIndexesSpec(spec);
  return `${JSON.stringify(key)}, ${JSON.stringify(options)}`;
}

function defaultText(value: DefaultValue): Json {
  if ('uuid' in value) return 'a UUID each';
  return 'expression' in value ? value.expression : value.literal;
}
