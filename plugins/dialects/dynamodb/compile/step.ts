import type { Segment, Statement } from '../../../../core/dialect.ts';
import type { Json } from '../../../../core/json.ts';
import { isExpression } from '../../../../core/schema/literal.ts';
import type { Collection, Field } from '../../../../core/schema/model.ts';
import type { NamedFieldDefinition } from '../../../../core/schema/operation.ts';
import type { TableDefinition } from '../catalog/registry.ts';
import { type IndexShape, type KeyAttribute, ON_DEMAND, type TableShape } from '../catalog/table-shape.ts';

/**
 * What a statement does, as the journal stores it. Every step but `raw` checks first what is already done, so it resumes
 * after an interruption.
 */
export type DynamoStep =
  | { readonly kind: 'create'; readonly table: string; readonly definition: TableDefinition }
  | { readonly kind: 'drop'; readonly table: string }
  /**
   * Registers the fields of a table. Fails with `empty` (a required field without default) if the table has items, and
   * with `added` if existing values under its name are not valid for the field.
   */
  | {
      readonly kind: 'register';
      readonly table: string;
      readonly definition: TableDefinition;
      readonly empty?: string;
      readonly added?: NamedFieldDefinition;
    }
  | {
      readonly kind: 'createIndex';
      readonly table: string;
      readonly index: string;
      readonly definition: TableDefinition;
    }
  | { readonly kind: 'dropIndex'; readonly table: string; readonly index: string; readonly definition: TableDefinition }
  /** Reads every item and fails if the move that follows cannot be applied. */
  | { readonly kind: 'check'; readonly table: string; readonly move: FieldMove }
  | { readonly kind: 'move'; readonly table: string; readonly move: FieldMove }
  | { readonly kind: 'raw'; readonly action: string; readonly input: Json };

export type DynamoStatement = Statement<DynamoStep>;
export type DynamoSegment = Segment<DynamoStep>;

/** A change of one field in every item. */
export type FieldMove =
  /** Sets the field to its default in items without a value. */
  | { readonly kind: 'fill'; readonly field: NamedFieldDefinition }
  | { readonly kind: 'remove'; readonly field: string }
  | { readonly kind: 'rename'; readonly from: string; readonly to: string }
  /** Converts every value to the new definition. With `key` no encoded value may change. */
  | {
      readonly kind: 'convert';
      readonly field: NamedFieldDefinition;
      readonly from: Pick<Field, 'type' | 'items'>;
      readonly key?: true;
    };

export function statementFor(text: string, step: DynamoStep, { destructive = false } = {}): DynamoStatement {
  return {
    text,
    run: step,
    transactional: false,
    destructive,
    // After an interrupted creation only the catalog shows whether the existing table is the one that was created.
    ...(step.kind !== 'raw' && step.kind !== 'create' && { idempotent: true }),
  };
}

const keyAttributeText = ({ name, type }: KeyAttribute): string => `${name} ${type}`;

export function tableText(table: string, shape: TableShape, { fields }: Pick<Collection, 'fields'>): string {
  const { partition, sort, billing, capacity, stream, ttl } = shape;
  const keys = `partition key ${keyAttributeText(partition)}${sort ? `, sort key ${keyAttributeText(sort)}` : ''}`;
  const keyed = [partition.name, sort?.name];
  const others = [...fields.values()].filter(({ name }) => !keyed.includes(name)).map(fieldText);
  return [
    `${table} (${keys})`,
    ...(billing === ON_DEMAND ? [] : [`${billing} ${capacity?.read}/${capacity?.write}`]),
    ...shape.globals.map((index) => `index ${indexText(index)}`),
    ...shape.locals.map((index) => `local index ${indexText(index)}`),
    ...(stream === undefined ? [] : [`stream ${stream}`]),
    ...(ttl === undefined ? [] : [`time to live ${ttl}, in seconds`]),
    ...(others.length > 0 ? [`registered fields ${others.join(', ')}`] : []),
  ].join('; ');
}

export function indexText({ name, partition, sort, projection }: IndexShape): string {
  return `${name} (${keyAttributeText(partition)}${sort ? `, ${keyAttributeText(sort)}` : ''}) ${projection}`;
}

export function fieldText({ name, type, required, default: value }: Field): string {
  const defaultText =
    value === undefined ? '' : ` default ${isExpression(value) ? value.$expression : JSON.stringify(value)}`;
  return `${name} ${type}${required ? ' required' : ''}${defaultText}`;
}
