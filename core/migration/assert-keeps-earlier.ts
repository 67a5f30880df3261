import { SvcError } from '../errors.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import type { Migration } from './migration.ts';
import { replayMigrations } from './replay.ts';

interface Rollback {
  readonly tag: string;
  readonly migration: Migration;
  /** Operations of `down` that do not run. */
  readonly skipped: ReadonlySet<MigrationOperation>;
}

/**
 * Throws if a `down` drops a table or field that an earlier migration created, and its own `up` did not create again.
 * Raw statements may bring it back, so with them nothing is known.
 */
export function assertKeepsEarlier(
  planned: readonly Rollback[],
  completed: readonly Migration[],
  dialect: string,
): void {
  const down = planned.flatMap(({ migration, skipped }) => migration.down.filter((one) => !skipped.has(one)));
  if (down.some((operation) => operation.type === 'raw' && operation.dialect === dialect)) return;
  const suspects = planned.flatMap(({ tag, migration, skipped }) => {
    const created = new Set(migration.up.map(createdName));
    const dropped = migration.down.flatMap((one) => (skipped.has(one) ? [] : (droppedName(one) ?? [])));
    return dropped.filter((name) => !created.has(name.join('.'))).map((name) => ({ tag, name }));
  });
  if (suspects.length === 0) return;
  const tags = new Set(planned.map(({ tag }) => tag));
  const expected = replayMigrations(
    completed.filter(({ tag }) => !tags.has(tag)),
    dialect,
  );
  const actual = replayMigrations(completed, dialect);
  for (const operation of down) actual.apply(operation);
  const lost = suspects.find(({ name: [table, field] }) => {
    const [before, after] = [expected.model.get(table), actual.model.get(table)];
    if (!before || expected.unmanaged.has(table)) return false;
    return field === undefined ? !after : before.fields.has(field) && after && !after.fields.has(field);
  });
  if (!lost) return;
  const { tag, name } = lost;
  throw new SvcError(
    'not_reversible_now',
    `The rollback of "${tag}" would drop "${name.join('.')}", which an earlier migration created.`,
    {
      why: 'Its down does not lead back to the schema before it.',
      state: 'Nothing was changed.',
      next: [
        `Undo it by hand, then: svc db migrate resolve ${tag} --rolled-back`,
        'Or write a new migration that corrects the schema: svc db migrate create <name>',
      ],
      details: { tag },
    },
  );
}

type Name = readonly [table: string, field?: string];

function droppedName(operation: MigrationOperation): Name[] | undefined {
  if (operation.type === 'dropCollection') return [[operation.collection]];
  return operation.type === 'dropField' ? [[operation.collection, operation.field]] : undefined;
}

function createdName(operation: MigrationOperation): string | undefined {
  switch (operation.type) {
    case 'createCollection':
      return operation.name;
    case 'renameCollection':
      return operation.to;
    case 'addField':
      return `${operation.collection}.${operation.field.name}`;
    case 'renameField':
      return `${operation.collection}.${operation.to}`;
    default:
      return undefined;
  }
}
