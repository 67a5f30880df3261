import { apply } from '../../core/schema/apply.ts';
import { type Refusals, refuseUnsupported } from '../../core/schema/features.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import { checkNameFits, type NameKind, type NameRules } from '../../core/schema/names.ts';
import type { Operation } from '../../core/schema/operation.ts';

export interface Rules {
  /** The dialect's, as it is registered. */
  readonly name: string;
  readonly names: NameRules;
  readonly refuses: Refusals;
}

/**
 * The model after an operation, which is what every `compile` begins with. Throws `not_supported` for what the rules
 * refuse, `name_invalid` for a name that they do not take, and what `apply` throws for what the model does not allow.
 */
export function checked(rules: Rules, operation: Operation, before: SchemaModel): SchemaModel {
  refuseUnsupported(rules.name, rules.refuses, operation, before);
  for (const [kind, name] of newNames(operation)) checkNameFits(rules.name, rules.names, name, kind);
  return apply(before, operation);
}

function newNames(operation: Operation): readonly (readonly [NameKind, string])[] {
  switch (operation.type) {
    case 'createCollection':
      return [['table', operation.name], ...operation.fields.map(({ name }) => ['field', name] as const)];
    case 'renameCollection':
      return [['table', operation.to]];
    case 'addField':
      return [['field', operation.field.name]];
    case 'renameField':
      return [['field', operation.to]];
    case 'createIndex':
      return [['index', operation.index]];
    case 'addConstraint': {
      const { name } = operation.constraint;
      return name === undefined ? [] : [['constraint', name]];
    }
    default:
      return [];
  }
}
