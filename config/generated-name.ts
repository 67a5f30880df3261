import type { Operation } from '../core/schema/operation.ts';

/** What a migration is called when nobody names it: `create_users`, `add_email_to_users`, `update_schema`. */
export function generatedName(operations: readonly Operation[]): string {
  const creates = operations.flatMap((operation) => (operation.type === 'createCollection' ? [operation.name] : []));
  const tables = new Set(operations.flatMap(tableOf));
  const [first] = operations;
  if (first && operations.length === 1) return nameOf(first);
  if (creates.length > 0 && [...tables].every((table) => creates.includes(table))) {
    return creates.length <= 2 ? `create_${creates.join('_and_')}` : 'create_tables';
  }
  const [table] = tables;
  return table !== undefined && tables.size === 1 ? `update_${table}` : 'update_schema';
}

function tableOf(operation: Operation): readonly string[] {
  if (operation.type === 'raw') return [];
  return [operation.type === 'createCollection' ? operation.name : operation.collection];
}

function nameOf(operation: Operation): string {
  switch (operation.type) {
    case 'createCollection':
      return `create_${operation.name}`;
    case 'dropCollection':
      return `drop_${operation.collection}`;
    case 'renameCollection':
      return `rename_${operation.collection}_to_${operation.to}`;
    case 'addField':
      return `add_${operation.field.name}_to_${operation.collection}`;
    case 'dropField':
      return `drop_${operation.field}_from_${operation.collection}`;
    case 'renameField':
      return `rename_${operation.from}_to_${operation.to}_in_${operation.collection}`;
    case 'modifyField':
      return `change_${operation.field}_of_${operation.collection}`;
    case 'createIndex':
      return `add_${operation.index}`;
    case 'dropIndex':
      return `drop_${operation.index}`;
    case 'addConstraint':
      return `add_${operation.constraint.name}`;
    case 'dropConstraint':
      return `drop_${operation.constraint}`;
    case 'raw':
      return 'raw_statement';
  }
}
