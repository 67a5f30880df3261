import * as assert from 'node:assert/strict';
import type { Dialect } from '../../core/dialect.ts';
import { isSvcError, type SvcError } from '../../core/errors.ts';
import { apply } from '../../core/schema/apply.ts';
import { isExpression } from '../../core/schema/literal.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { CreateCollection, NamedFieldDefinition, Operation } from '../../core/schema/operation.ts';
import { type Feature, requiredFeatures, unsupportedReason } from '../../core/schema/unsupported-features.ts';

export const ID: NamedFieldDefinition = { name: 'id', type: 'integer', primaryKey: true };

/** The operations that a dialect claims to support. Checks that it rejects the others as it should. */
export interface SupportedOperations {
  /** Whether an operation is unsupported. If so, checks that `compile` rejects it. */
  isUnsupported(operation: Operation, model: SchemaModel): boolean;
  /** Whether one of several consecutive operations is unsupported. */
  isAnyUnsupported(operations: readonly Operation[], from: SchemaModel): boolean;
  /** The field without the unsupported features. */
  supportedField(field: NamedFieldDefinition): NamedFieldDefinition;
  /** Creates a collection with the supported part of each field, without arrays if the engine has none. */
  create(name: string, fields: readonly NamedFieldDefinition[]): CreateCollection;
}

export function supportedOperations(dialect: Dialect): SupportedOperations {
  const { unsupported } = dialect.capabilities;
  const reasonOf = (feature: Feature) => unsupportedReason(unsupported, feature);
  const isUnsupported = (operation: Operation, model: SchemaModel): boolean => {
    const features = [...requiredFeatures(operation, model)].filter(reasonOf);
    if (features.length === 0) return false;
    const error = expectThrown(() => dialect.compile(operation, model));
    const message = `${JSON.stringify(operation)} needs ${features}, which is unsupported`;
    assert.equal(error.code, 'not_supported', message);
    assert.ok(
      features.some(
        // Everything that is unsupported may be named at once.
        (feature) =>
          error.why?.includes(reasonOf(feature)?.why ?? '') && error.next.includes(reasonOf(feature)?.next ?? ''),
      ),
      message,
    );
    return true;
  };
  const isAnyUnsupported = (operations: readonly Operation[], from: SchemaModel): boolean => {
    let model = from;
    for (const operation of operations) {
      if (isUnsupported(operation, model)) return true;
      model = apply(model, operation);
    }
    return false;
  };
  const supportedField = (field: NamedFieldDefinition): NamedFieldDefinition => {
    const others = field.primaryKey ? [] : [ID];
    const operation: CreateCollection = { type: 'createCollection', name: 'one', fields: [...others, field] };
    if (!isUnsupported(operation, new Map())) return field;
    const { unique, required, autoGenerate, default: value, ...plain } = field;
    const ifSupported = (feature: Feature, part: Partial<NamedFieldDefinition>): Partial<NamedFieldDefinition> => {
      const fields = [...others, { ...plain, ...part }];
      return requiredFeatures({ ...operation, fields }, new Map()).has(feature) && reasonOf(feature) ? {} : part;
    };
    const generation = plain.type === 'uuid' || plain.type === 'string' ? 'generated' : 'generatedInteger';
    const isArrayWithout = plain.type === 'array' && reasonOf('arrayDefault') !== undefined;
    const hasDefault = value !== undefined && !unsupported.default && !isArrayWithout;
    const expression = value !== undefined && isExpression(value) ? 'expressionDefault' : 'default';
    return {
      ...plain,
      ...(unique && ifSupported('unique', { unique })),
      ...(required && ifSupported('required', { required })),
      ...(autoGenerate && ifSupported(generation, { autoGenerate })),
      ...(hasDefault && ifSupported(expression, { default: value })),
    };
  };
  const create = (name: string, fields: readonly NamedFieldDefinition[]): CreateCollection => ({
    type: 'createCollection',
    name,
    // `supportedField` has checked that the others are rejected.
    fields: fields.map(supportedField).filter(({ type }) => type !== 'array' || !unsupported.array),
  });
  return { isUnsupported, isAnyUnsupported, supportedField, create };
}

export function isLegal(operation: Operation, model: SchemaModel): boolean {
  try {
    apply(model, operation);
    return true;
  } catch (error) {
    if (isSvcError(error)) return false;
    throw error;
  }
}

export function expectThrown(work: () => unknown): SvcError {
  try {
    work();
  } catch (error) {
    if (isSvcError(error)) return error;
    throw error;
  }
  throw new Error('an error was expected, but nothing was thrown');
}
