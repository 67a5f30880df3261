import { isDeepStrictEqual } from 'node:util';
import type { Segment } from '../dialect.ts';
import { SvcError } from '../errors.ts';
import { describeDifferences } from '../schema/diff.ts';
import { withoutUnknownReferences } from './drift.ts';
import type { MigrationRun } from './journal.ts';
import { operationsOfStep, type PlannedMigration, verifiableCollections } from './planned-migration.ts';
import { collectionsAfter, type ExpectedEffect, effectDifferences, rememberEffect } from './remember-effect.ts';
import { modelsAround } from './step-outcome.ts';

/**
 * The segment, extended to verify what its raw statements make before it commits. Several normal forms are compared,
 * because a server may rewrite an expression that it has rewritten once, and the open transaction allows no other session.
 */
export async function withVerification(
  run: MigrationRun,
  planned: PlannedMigration,
  step: number,
  segment: Segment,
): Promise<Segment> {
  const effect = await expectedEffect(run, planned, step);
  if (!effect) return segment;
  const { connection, dialect } = run.target;
  const expected = collectionsAfter(effect);
  const normal = await connection.normalize(expected);
  const accepted = [normal, dialect.normalize(expected), await connection.normalize(normal)];
  return {
    ...segment,
    async verify(introspect) {
      const found = withoutUnknownReferences(await introspect(effect.names), effect.after);
      if (accepted.some((model) => isDeepStrictEqual(model, found))) return;
      throw differsError(describeDifferences(normal, found));
    },
  };
}

/** Compares the catalog with what the raw statement of a step makes, after it ran. */
export async function assertEffect(run: MigrationRun, planned: PlannedMigration, step: number): Promise<void> {
  const effect = await expectedEffect(run, planned, step);
  if (!effect) return;
  const differences = await effectDifferences(run.target.connection, effect);
  if (differences.length > 0 && !(await rememberEffect(run, effect))) throw differsError(differences);
}

function differsError(differences: readonly string[]): SvcError {
  return new SvcError('effect_differs', 'The statement did not make what its `makes` says.', {
    why: differences.join('; '),
    next: ['Correct `makes`, or the statement, in the migration.'],
    details: { differences },
  });
}

/** The collections that a step's raw statements make, after all of its operations. */
async function expectedEffect(
  run: MigrationRun,
  planned: PlannedMigration,
  step: number,
): Promise<ExpectedEffect | undefined> {
  const names = [...new Set(verifiableCollections(planned, step, run.target.dialect.name))];
  const { first, count } = operationsOfStep(planned, step);
  const models = names.length > 0 ? await modelsAround(run, planned, first, count) : undefined;
  return models && { names, ...models };
}
