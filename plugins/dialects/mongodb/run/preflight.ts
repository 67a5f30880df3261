import type { PreflightFailure, PreflightReport } from '../../../../core/dialect.ts';
import { isSvcError } from '../../../../core/errors.ts';
import type { MongoStatement, MongoStep, Precondition } from '../compile/step.ts';
import { assertPreconditions, type FieldMove } from '../data/preconditions.ts';
import type { RunContext } from './run-context.ts';

/**
 * Checks the documents for all statements before the first one runs, as far as no earlier statement changes what a check
 * reads. Each step repeats its checks.
 */
export async function preflight(
  context: RunContext,
  statements: readonly MongoStatement[],
  isPreview = false,
): Promise<PreflightReport> {
  const failures: PreflightFailure[] = [];
  const changes = new RunChanges();
  for (const [statement, { run: step }] of statements.entries()) {
    // A raw command may change any collection.
    if (step.kind === 'raw') break;
    const collection = changes.originalName(step.collection);
    const checks = (step.checks ?? []).filter((check) => !changes.mayAffect(collection, check));
    const moves = changes.moves(collection);
    changes.add(step);
    // Nothing was changed when the first step makes its own checks.
    if (collection === undefined || checks.length === 0 || (statement === 0 && !isPreview)) continue;
    try {
      await assertPreconditions(context, collection, checks, moves);
    } catch (error) {
      if (!isSvcError(error)) throw error;
      failures.push({ statement, error });
    }
  }
  return { failures, copies: [] };
}

/** What the steps of a run change in collections that exist at its start. */
class RunChanges {
  /** The name at the start of each collection that the run creates, drops or renames, if it existed then. */
  readonly #originals = new Map<string, string | undefined>();
  /** The fields that steps change in documents, by the name of their collection at the start. */
  readonly #fields = new Map<string, Set<string>>();
  /** The fields that steps rename, by the name of their collection at the start. */
  readonly #moves = new Map<string, FieldMove[]>();

  originalName(collection: string): string | undefined {
    return this.#originals.has(collection) ? this.#originals.get(collection) : collection;
  }

  add(step: Exclude<MongoStep, { kind: 'raw' }>): void {
    const original = this.originalName(step.collection);
    if (step.kind === 'create' || step.kind === 'drop') this.#originals.set(step.collection, undefined);
    if (step.kind === 'rename') this.#originals.set(step.collection, undefined).set(step.to, original);
    if (original === undefined) return;
    const changed = this.#fields.get(original) ?? new Set();
    for (const field of changedFields(step, changed)) changed.add(field);
    this.#fields.set(original, changed);
    if (step.kind === 'move') this.#moves.set(original, [...this.moves(original), step]);
  }

  moves(collection: string | undefined): readonly FieldMove[] {
    return collection === undefined ? [] : (this.#moves.get(collection) ?? []);
  }

  mayAffect(collection: string | undefined, check: Precondition): boolean {
    const changed = collection === undefined ? undefined : this.#fields.get(collection);
    if (!changed || changed.size === 0) return false;
    return fieldsRead(check)?.some((field) => changed.has(topLevel(field))) ?? true;
  }
}

/** A renamed field has the values that it had under its name before. */
function changedFields(step: MongoStep, changed: ReadonlySet<string>): readonly string[] {
  switch (step.kind) {
    case 'fill':
    case 'unset':
    case 'convert':
      return [topLevel(step.field)];
    case 'move':
      return changed.has(topLevel(step.from)) ? [topLevel(step.to)] : [];
    default:
      return [];
  }
}

const topLevel = (path: string): string => path.split('.', 1)[0] ?? path;

/** Undefined for a check with an expression, which may read any field. */
function fieldsRead(check: Precondition): readonly string[] | undefined {
  if ('missingField' in check) return [check.missingField];
  if ('both' in check) return check.both;
  if ('duplicates' in check) return check.duplicates.key.map(([name]) => name);
  return 'change' in check ? [check.field] : undefined;
}
