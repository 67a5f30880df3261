import { SvcError } from '../../core/errors.ts';
import { generateTag } from '../../core/migration/tag.ts';
import { isObjectOperation } from '../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../core/schema/operation.ts';

/** The default name of a migration: `create_users`, `add_email_to_users`, `update_schema`. */
export function generatedName(operations: readonly MigrationOperation[]): string {
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

function tableOf(operation: MigrationOperation): readonly string[] {
  if (isObjectOperation(operation)) return [];
  if (operation.type === 'raw') return [];
  return [operation.type === 'createCollection' ? operation.name : operation.collection];
}

function nameOf(operation: MigrationOperation): string {
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
    case 'createObject':
      return `create_${objectWords(operation)}`;
    case 'replaceObject':
      return `change_${objectWords(operation)}`;
    case 'dropObject':
      return `drop_${objectWords(operation)}`;
    case 'raw':
      return 'raw_statement';
  }
}

/** A tag has no parentheses. */
const objectWords = ({ kind, name }: { readonly kind: string; readonly name: string }): string =>
  `${kind}_${name}`.replace(/[^\p{L}\p{N}_]+/gu, '_').replace(/_+$/, '');

/**
 * Generates a tag that sorts after the newest file, even if the clock is slow: files run in the order of their tags.
 */
export function nextTag(name: string, now: Date, newest: string | undefined): string {
  if (newest === undefined) return generateTag(name, now);
  const time = Math.max(now.getTime(), timeOf(newest) ?? 0);
  for (const offset of [0, 1000]) {
    const tag = generateTag(name, new Date(time + offset));
    if (tag > newest) return tag;
  }
  throw new SvcError('tag_invalid', `The migration "${newest}" sorts after every tag that could be generated.`, {
    why: 'Files run in the order of their tags, and a generated tag starts with the date.',
    state: 'Nothing was written.',
    next: [
      'Rename that file to <YYYYMMDD>_<HHMMSS>_<name>, and change the tag in it.',
      `Where it is applied, then also: svc db migrate resolve ${newest} --forget, and: svc db migrate baseline`,
    ],
  });
}

function timeOf(tag: string): number | undefined {
  const found = /^(\d{4})(\d\d)(\d\d)_(\d\d)(\d\d)(\d\d)_/.exec(tag)?.slice(1).map(Number);
  if (!found) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = found;
  const time = Date.UTC(year, month - 1, day, hour, minute, second);
  return time < Date.UTC(9999, 11, 31) ? time : undefined;
}
