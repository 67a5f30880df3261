import { isSvcError } from '../errors.ts';
import { defineCollection, defineConstraint, defineField, defineIndex } from './define.ts';
import { checkName, checkTableName } from './names.ts';
import type { Operation } from './operation.ts';

/** Why an operation of the right shape can hold on no engine and in no model; nothing when it could. */
export function definitionProblems(operation: Operation): string[] {
  try {
    define(operation);
    return [];
  } catch (error) {
    if (!isSvcError(error)) throw error;
    return [error.why === undefined ? error.message : `${error.message} ${error.why}`];
  }
}

function define(operation: Operation): void {
  if (operation.type === 'raw') return;
  if (operation.type !== 'createCollection') checkName(operation.collection, 'table');
  switch (operation.type) {
    case 'createCollection':
      defineCollection(operation);
      checkTableName(operation.name);
      break;
    case 'renameCollection':
      checkTableName(operation.to);
      break;
    case 'renameField':
      checkName(operation.to, 'field');
      break;
    case 'addField': {
      const { name, ...definition } = operation.field;
      defineField(name, definition, operation.collection);
      break;
    }
    case 'createIndex':
      defineIndex(operation);
      break;
    case 'addConstraint':
      defineConstraint(operation.constraint, operation.collection);
      break;
    case 'dropCollection':
    case 'dropField':
    case 'modifyField':
    case 'dropIndex':
    case 'dropConstraint':
      break;
    default:
      operation satisfies never;
  }
}
