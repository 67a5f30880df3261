import type { Adapter } from '../database/adapter.ts';
import type { Draft } from '../schema/draft.ts';
import type { ForeignKey } from '../schema/model.ts';
import type { Operation } from '../schema/operation.ts';
import type { Ledger } from './ledger.ts';

/**
 * The model that operations are planned on. Where one of them drops a table with whatever points at it, foreign keys
 * that the history does not know, made by hand, are in it too: the plan lists them and drops them like the others.
 */
export async function draftFor(
  { connection, dialect }: Pick<Adapter, 'connection' | 'dialect'>,
  ledger: Ledger,
  operations: readonly Operation[],
): Promise<Draft> {
  const draft = await ledger.draft(connection);
  const targets = cascaded(operations);
  if (targets.size === 0 || dialect.capabilities.refuses.foreignKey) return draft;
  for (const found of (await connection.introspect()).values()) {
    const known = draft.get(found.name);
    const pointing = [...found.constraints.values()].filter(
      (one): one is ForeignKey => one.type === 'foreignKey' && targets.has(one.references.table),
    );
    if (pointing.every(({ name }) => known?.constraints.has(name))) continue;
    // An engine may have renamed what the history knows.
    const seen = known && (await connection.seen(new Map([[known.name, known]]))).get(known.name);
    const unknown = pointing.filter(({ name }) => !seen?.constraints.has(name));
    if (unknown.length === 0) continue;
    const constraints = new Map(known?.constraints);
    for (const foreignKey of unknown) constraints.set(foreignKey.name, foreignKey);
    draft.set(found.name, known ? { ...known, constraints } : found);
  }
  return draft;
}

/** Tables that are dropped with what points at them, under the names they have before the operations. */
function cascaded(operations: readonly Operation[]): ReadonlySet<string> {
  const names = new Set<string>();
  for (const operation of [...operations].reverse()) {
    if (operation.type === 'dropCollection' && operation.cascade) names.add(operation.collection);
    if (operation.type === 'renameCollection' && names.has(operation.to)) names.add(operation.collection);
  }
  return names;
}
