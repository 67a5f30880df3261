import { SvcError } from '../../errors.ts';
import type { Path } from '../../validate-shape.ts';
import type { SchemaModel } from '../model.ts';
import type { Renames } from '../rename/renames.ts';
import { dropKey, type RenameDecisions, type UndecidedRename } from '../rename/undecided.ts';
import { type Declaration, schemaInvalid } from './declaration.ts';

export interface DeclaredRenames {
  readonly renames: Renames;
  /** Renames that an earlier migration may already have performed. */
  readonly ambiguous: readonly UndecidedRename[];
}

type Names = { has(name: string): boolean };

interface RenameRequest {
  readonly from: string;
  readonly to: string;
  readonly path: Path;
}

/** The tables of a schema, or the fields of one table. */
interface Scope extends Pick<UndecidedRename, 'kind'> {
  /** The table of the fields. */
  readonly collection?: string;
  readonly requests: readonly RenameRequest[];
  readonly previous: Names;
  readonly next: Names;
}

interface ScopeRenames {
  /** Old name to new. */
  readonly renames: ReadonlyMap<string, string>;
  readonly ambiguous: readonly UndecidedRename[];
}

/** The renames the user decided on, and each `renamedFrom` that earlier migrations have not performed. */
export function declaredRenames(
  declaration: Declaration,
  model: SchemaModel,
  previous: SchemaModel,
  decisions: RenameDecisions,
): DeclaredRenames {
  const requests = Object.entries(declaration.options ?? {}).flatMap(([to, { renamedFrom }]) =>
    renameRequest(renamedFrom, to, ['options', to, 'renamedFrom']),
  );
  const tables = resolveScope({ kind: 'collection', requests, previous, next: model }, decisions);
  const oldNames = new Map([...tables.renames].map(([from, to]) => [to, from]));
  const fields = new Map<string, ReadonlyMap<string, string>>();
  const ambiguous = [...tables.ambiguous];
  for (const [collection, after] of model) {
    const requests = fieldRenameRequests(declaration, collection);
    const before = previous.get(oldNames.get(collection) ?? collection);
    // The name was assigned to another table, so a table under the old name is new.
    if (!before || (!oldNames.has(collection) && tables.renames.has(collection))) continue;
    const scope: Scope = { kind: 'field', collection, requests, previous: before.fields, next: after.fields };
    const { renames, ambiguous: more } = resolveScope(scope, decisions);
    if (renames.size > 0) fields.set(collection, renames);
    ambiguous.push(...more);
  }
  return { renames: { collections: tables.renames, fields }, ambiguous };
}

function fieldRenameRequests({ tables }: Declaration, table: string): RenameRequest[] {
  return Object.entries(tables[table] ?? {}).flatMap(([to, definition]) =>
    typeof definition === 'string'
      ? []
      : renameRequest(definition.renamedFrom, to, ['tables', table, to, 'renamedFrom']),
  );
}

function renameRequest(from: string | undefined, to: string, path: Path): RenameRequest[] {
  if (from === undefined) return [];
  if (from === to) throw schemaInvalid(`"${to}" cannot be renamed from itself.`, 'renamedFrom is the old name.', path);
  return [{ from, to, path }];
}

/**
 * A request applies if its old name is removed and its new name is new. In a chain (a to b, b to c) a name is both: it is
 * released by one rename and taken by another. If only one of the two conditions is met, the request is ambiguous.
 */
function resolveScope(
  { kind, collection, requests, previous, next }: Scope,
  { renames, drops }: RenameDecisions,
): ScopeRenames {
  const pairOf = ({ from, to }: Pick<RenameRequest, 'from' | 'to'>) => ({
    kind,
    collection: collection ?? to,
    from,
    to,
  });
  const decided = new Map(
    renames
      .filter((pair) => pair.kind === kind && (collection === undefined || pair.collection === collection))
      .map(({ from, to }) => [from, to] as const),
  );
  const taken = new Set(decided.values());
  const wanted = requests.filter(
    (one) => previous.has(one.from) && !decided.has(one.from) && !taken.has(one.to) && !drops.has(dropKey(pairOf(one))),
  );
  let found = decided;
  let targets = taken;
  const isRemoved = (name: string) => !next.has(name) || targets.has(name);
  const isNew = (name: string) => !previous.has(name) || found.has(name);
  let open = wanted;
  let count: number;
  do {
    count = open.length;
    found = resolveChains(open, decided, previous);
    targets = new Set(found.values());
    open = open.filter(({ from, to }) => isNew(to) && isRemoved(from));
  } while (open.length < count);
  assertRenamedOnce(open);
  const ambiguous = wanted.flatMap((one): UndecidedRename[] => {
    if (found.has(one.from) || isNew(one.to) === isRemoved(one.from)) return [];
    return [{ ...pairOf(one), ambiguity: isNew(one.to) ? 'oldNameDeclared' : 'newNameExists' }];
  });
  return { renames: found, ambiguous };
}

/** Requests whose new name is free, or becomes free through another request. */
function resolveChains(
  requests: readonly RenameRequest[],
  decided: ReadonlyMap<string, string>,
  previous: Names,
): Map<string, string> {
  const found = new Map(decided);
  let before: number;
  do {
    before = found.size;
    for (const { from, to } of requests) if (!previous.has(to) || found.has(to)) found.set(from, to);
  } while (found.size > before);
  return found;
}

function assertRenamedOnce(requests: readonly RenameRequest[]): void {
  const claimed = new Set<string>();
  for (const { from, path } of requests) {
    if (claimed.has(from)) {
      throw new SvcError('schema_invalid', `Two declarations are renamed from "${from}".`, { details: { path } });
    }
    claimed.add(from);
  }
}
