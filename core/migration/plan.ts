import type { Adapter } from '../database/adapter.ts';
import type { Statement } from '../dialect.ts';
import { isSvcError, SvcError } from '../errors.ts';
import { change } from '../schema/apply.ts';
import { defineCollection } from '../schema/define.ts';
import type { Draft } from '../schema/draft.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import { checkNewNames } from '../schema/names.ts';
import type { CreateCollection, Operation } from '../schema/operation.ts';
import { checksum } from './checksum.ts';
import { drift } from './drift.ts';
import type { JournalStep, Origin } from './history.ts';
import { Made } from './made.ts';
import type { Migration } from './migration.ts';
import { needs, touches } from './touches.ts';

export type Direction = 'up' | 'down';

/** A migration whose every statement is known: nothing has run yet. */
export interface PlannedMigration {
  readonly tag: string;
  readonly origin: Origin;
  readonly direction: Direction;
  readonly migration: Migration;
  readonly checksum: string;
  readonly steps: readonly JournalStep[];
  readonly statements: readonly Statement[];
  /** Collections that it touches, as they were before it; unknown of one that an older SDK began. */
  readonly before: SchemaModel | undefined;
  /** Of the tables that it creates if they are not there, those that are; absent where it has none. */
  readonly found?: readonly string[];
}

/**
 * Compiles one direction of a migration, but for operations that are left out, and moves the draft on. A refusal names
 * the migration and the operation. `made` are the collections of those before it in the same run.
 */
export async function planMigration(
  adapter: Adapter,
  migration: Migration,
  direction: Direction,
  origin: Origin,
  draft: Draft,
  { leftOut = new Set(), made = new Made() }: { readonly leftOut?: ReadonlySet<Operation>; readonly made?: Made } = {},
): Promise<PlannedMigration> {
  const compiled: { operation: number; statement: Statement }[] = [];
  const before = new Map<string, Collection | undefined>();
  const found = migration[direction].some(mayExist) ? new Set<string>() : undefined;
  for (const [index, operation] of migration[direction].entries()) {
    if (leftOut.has(operation)) continue;
    try {
      const statements = await planOperation(adapter, operation, draft, before, found);
      const isHarmless = made.hasAll(operation);
      for (const statement of statements)
        compiled.push({ operation: index, statement: isHarmless ? { ...statement, destructive: false } : statement });
      made.note(operation, statements.length);
    } catch (error) {
      if (!isSvcError(error)) throw error;
      throw error.with({
        where: error.where ?? `${migration.tag} ${direction}[${index}]`,
        state: 'Nothing was changed.',
        ...(error.next.length === 0 && { next: [`Correct "${migration.tag}", then run the command again.`] }),
        details: { tag: migration.tag },
      });
    }
  }
  return {
    tag: migration.tag,
    origin,
    direction,
    migration,
    checksum: checksum(migration),
    steps: segment(compiled),
    statements: compiled.map(({ statement }) => statement),
    before: new Map([...before.values()].flatMap((there) => (there ? [[there.name, there]] : []))),
    ...(found && { found: [...found] }),
  };
}

/** Notes in `before` how the draft has what is touched for the first time: a table, or none of that name. */
async function planOperation(
  adapter: Adapter,
  operation: Operation,
  draft: Draft,
  before: Map<string, Collection | undefined>,
  found: Set<string> | undefined,
): Promise<readonly Statement[]> {
  if (operation.type === 'raw') return adapter.dialect.compile(operation, draft);
  const missing = needs(operation).filter((name) => !draft.has(name));
  if (missing.length > 0) {
    for (const [name, collection] of await adapter.connection.introspect(missing)) draft.set(name, collection);
  }
  for (const name of touches(operation)) if (!before.has(name)) before.set(name, draft.get(name));
  if (mayExist(operation)) {
    const isThere = await existsAlready(adapter, operation, draft);
    // What a migration before it makes in the same run is not its own either.
    if (draft.has(operation.name)) found?.add(operation.name);
    if (isThere) return [];
  }
  const { name: engine, capabilities } = adapter.dialect;
  const statements = adapter.dialect.compile(operation, draft);
  const earlier = new Map(touches(operation).map((name) => [name, draft.get(name)]));
  change(draft, operation);
  for (const [name, was] of earlier) {
    const is = draft.get(name);
    if (is && is !== was) checkNewNames(engine, capabilities.names, draft, is, was);
  }
  return statements;
}

/** A table that may be there already. */
export function mayExist(operation: Operation): operation is CreateCollection {
  return operation.type === 'createCollection' && operation.options?.sqlOptions?.ifNotExists === true;
}

/** `ifNotExists` is recorded without a change only where the table is what the definition says. */
async function existsAlready(adapter: Adapter, operation: CreateCollection, draft: Draft): Promise<boolean> {
  const found = await adapter.connection.introspect([operation.name]);
  if (!found.has(operation.name)) return false;
  const defined = defineCollection(operation);
  const expected = withoutSupport(new Map([[operation.name, defined]]));
  const differences = await drift(adapter.connection, expected, withoutSupport(found));
  if (differences.length > 0) {
    throw new SvcError(
      'table_differs',
      `The table "${operation.name}" already exists and is not what the definition says.`,
      {
        why: differences.join('; '),
        state: 'Nothing was changed.',
        next: ['Change the definition to what is there, or use another name.'],
      },
    );
  }
  if (!draft.has(operation.name)) draft.set(operation.name, defined);
  return true;
}

/** A create operation defines fields; indexes and constraints come from operations of their own. */
function withoutSupport(model: ReadonlyMap<string, Collection>): ReadonlyMap<string, Collection> {
  return new Map(
    [...model].map(([name, collection]) => [name, { ...collection, indexes: new Map(), constraints: new Map() }]),
  );
}

/** Neighbours that can be in one transaction become one step; a statement that cannot is a step of its own. */
function segment(compiled: readonly { operation: number; statement: Statement }[]): JournalStep[] {
  const steps: { operation: number; transactional: boolean; statements: Statement[] }[] = [];
  for (const { operation, statement } of compiled) {
    const last = steps.at(-1);
    if (last?.transactional && statement.transactional) last.statements.push(statement);
    else steps.push({ operation, transactional: statement.transactional, statements: [statement] });
  }
  return steps;
}

/** Commits together with its history row: all of it or nothing. */
export function isAtomic(planned: PlannedMigration): boolean {
  return planned.steps.length === 0 || (planned.steps.length === 1 && planned.steps[0]?.transactional === true);
}
