import type { Dialect } from '../../core/dialect.ts';
import { applyInPlace } from '../../core/schema/apply.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import { MutableSchema } from '../../core/schema/mutable-schema.ts';
import type { ModifyField, Operation, RenameField } from '../../core/schema/operation.ts';
import { requiredFeatures } from '../../core/schema/unsupported-features.ts';

/**
 * Gives renames that the engine cannot do in place the strategy `copy`. If it cannot change a type in place either, the
 * copy also makes the other changes of the field.
 */
export function renamesByCopy(
  operations: readonly Operation[],
  { capabilities: { unsupported } }: Dialect,
  before: SchemaModel,
): readonly Operation[] {
  if (!unsupported.renameField) return operations;
  const model = new MutableSchema(before);
  const result: Operation[] = [];
  const included = new Set<Operation>();
  for (const [index, operation] of operations.entries()) {
    if (included.has(operation)) continue;
    const rename = operation.type === 'renameField' && requiredFeatures(operation, model).has('renameField');
    if (!rename) {
      applyInPlace(model, operation);
      result.push(operation);
      continue;
    }
    const copied: RenameField = { ...operation, strategy: 'copy' };
    const after = new MutableSchema(model);
    applyInPlace(after, copied);
    const change = operations.slice(index).find((one) => isChangeOf(one, copied));
    const converts = change && unsupported.changeType && requiredFeatures(change, after).has('changeType');
    if (converts) included.add(change);
    const written: RenameField = converts ? { ...copied, changes: change.changes } : copied;
    applyInPlace(model, written);
    result.push(written);
  }
  return result;
}

function isChangeOf(operation: Operation, { collection, to }: RenameField): operation is ModifyField {
  return operation.type === 'modifyField' && operation.collection === collection && operation.field === to;
}
