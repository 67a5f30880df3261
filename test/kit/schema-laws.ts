import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { isSvcError } from '../../core/errors.ts';
import { apply, applyAll } from '../../core/schema/apply.ts';
import { type Declaration, declarationOf } from '../../core/schema/declaration/declaration.ts';
import { resolveDeclaration } from '../../core/schema/declaration/resolve-declaration.ts';
import { defineField, toFieldDefinition } from '../../core/schema/define.ts';
import { diff } from '../../core/schema/diff.ts';
import { invert, invertAll } from '../../core/schema/invert.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { Operation } from '../../core/schema/operation.ts';
import { operationProblems } from '../../core/schema/operation-problems.ts';
import type { Renames } from '../../core/schema/rename/renames.ts';
import { type AppliedMoves, applyMoves, CHOICES, type SchemaChoices } from '../suites/random-schema.ts';
import { arbitraryChange, arbitraryModel, arbitraryMoves } from './arbitrary-schema.ts';

type Test = (name: string, body: () => unknown, options: { timeoutMs: number }) => void;

const runs = Number(process.env.SVC_TEST_RUNS ?? '1');

/** Checks a property with seeded random cases. A failed one is shrunk and reported with its seed. */
export function checkProperty<T>(property: fc.IProperty<T>, cases: number): void {
  const seed = Number(process.env.SVC_TEST_SEED ?? '20261121');
  const result = fc.check(property, { seed, numRuns: Math.ceil(cases * runs) });
  if (!result.failed) return;
  const error = result.errorInstance;
  const what =
    error instanceof Error ? `${error.message}${'why' in error ? ` ${String(error.why)}` : ''}` : String(error);
  throw new Error(
    [
      `Failed after ${result.numRuns} cases, shrunk ${result.numShrinks} times: ${what}`,
      `Again with SVC_TEST_SEED=${result.seed} (path ${result.counterexamplePath})`,
      fc.stringify(result.counterexample),
    ].join('\n'),
    { cause: error },
  );
}

/** Tests the laws of apply, invert and diff with random schemas. */
export function schemaLaws(declareTest: Test, choices: SchemaChoices = CHOICES, cases = 1_000): void {
  const test = (name: string, body: () => unknown) =>
    declareTest(name, body, { timeoutMs: 30_000 * Math.max(1, runs) });

  test('diff(a, a) = []', () => {
    checkProperty(
      fc.property(arbitraryModel(choices), (model) => {
        assert.deepEqual(diff(model, model), []);
        assert.deepEqual(diff(model, new Map([...model].reverse())), []);
      }),
      cases,
    );
  });

  test('diff from an empty model creates the model, and diff to an empty model drops it', () => {
    checkProperty(
      fc.property(arbitraryModel(choices), (model) => {
        assert.deepEqual(applyAll(diff(new Map(), model)), model);
        assert.deepEqual(applyAll(diff(model, new Map()), model), new Map());
      }),
      cases,
    );
  });

  test('apply(apply(s, op), invert(op, s)) = s', () => {
    checkProperty(
      fc.property(arbitraryMoves(40, choices), (list) => {
        let model: SchemaModel = new Map();
        for (const operation of applyMoves(list, model, choices).operations) {
          const after = apply(model, operation);
          assert.deepEqual(applyAll(invert(operation, model), after), model);
          model = after;
        }
      }),
      cases,
    );
  });

  test('fold(a, diff(a, b)) = b with renames, and its inverse restores a', () => {
    checkProperty(
      fc.property(arbitraryChange(choices), ({ from, model, renames }) => assertDiffLeadsTo(from, model, renames)),
      cases * 4,
    );
  });

  test('fold(a, diff(a, b)) = b with some of the renames', () => {
    checkProperty(
      fc.property(arbitraryChange(choices), fc.nat(255), ({ from, model, renames }, mask) =>
        assertDiffLeadsTo(from, model, subsetOfRenames(renames, mask)),
      ),
      cases,
    );
  });

  test('fold(a, diff(a, b)) = b of two unrelated schemas', () => {
    checkProperty(
      fc.property(arbitraryModel(choices), arbitraryModel(choices), (from, to) =>
        assertDiffLeadsTo(from, to, { collections: new Map(), fields: new Map() }),
      ),
      cases,
    );
  });

  test('a rename drops nothing', () => {
    const renaming = {
      ...choices,
      kinds: ['renameCollection', 'renameField', 'swapFields', 'swapCollections'] as const,
    };
    checkProperty(
      fc.property(arbitraryModel(choices), arbitraryMoves(10, renaming), (from, list) => {
        const { model, renames } = applyMoves(list, from, renaming);
        const kinds = new Set(diff(from, model, renames).map(({ type }) => type));
        for (const type of ['dropCollection', 'dropField', 'modifyField', 'dropIndex'] as const)
          assert.ok(!kinds.has(type), type);
      }),
      cases,
    );
  });

  test('operations survive serialization as JSON', () => {
    checkProperty(
      fc.property(arbitraryModel(choices), (model) => {
        const operations = JSON.parse(JSON.stringify(diff(new Map(), model))) as Operation[];
        for (const operation of operations) assert.deepEqual(operationProblems(operation), []);
        assert.deepEqual(applyAll(operations), model);
      }),
      cases,
    );
  });

  test('a written field defines the field', () => {
    checkProperty(
      fc.property(arbitraryModel(choices), (model) => {
        for (const collection of model.values()) {
          for (const field of collection.fields.values()) {
            const { name, ...definition } = toFieldDefinition(field);
            assert.deepEqual(defineField(name, definition, collection.name), field);
          }
        }
      }),
      cases,
    );
  });

  test('a schema file written from a model declares the model', () => {
    checkProperty(
      fc.property(arbitraryModel(choices), (model) => {
        fc.pre([...model.values()].every(hasPrimaryKey));
        const written = JSON.parse(JSON.stringify(declarationOf(model))) as Declaration;
        const declared = resolveDeclaration(written);
        assert.deepEqual(declared.model, model);
        assert.deepEqual(declared.renames, { collections: new Map(), fields: new Map() });
        assert.deepEqual(declared.ambiguous, []);
      }),
      cases,
    );
  });
}

function assertDiffLeadsTo(from: SchemaModel, to: SchemaModel, renames: Renames): void {
  let operations: Operation[];
  try {
    operations = diff(from, to, renames);
  } catch (error) {
    if (isSvcError(error) && error.code === 'options_cannot_change') return;
    throw error;
  }
  assert.deepEqual(applyAll(operations, from), to);
  assert.deepEqual(applyAll(invertAll(operations, from), to), from);
}

function subsetOfRenames({ collections, fields }: AppliedMoves['renames'], mask: number): Renames {
  const renamedTables = new Map([...collections].filter((_, index) => mask & (1 << (index % 8))));
  const oldNames = new Map([...collections].map(([old, name]) => [name, old]));
  return {
    collections: renamedTables,
    // Without its rename a table counts as a new one, so its fields were not renamed.
    fields: new Map(
      [...fields].filter(
        ([name]) => renamedTables.has(oldNames.get(name) ?? '') || (!oldNames.has(name) && !renamedTables.has(name)),
      ),
    ),
  };
}

function hasPrimaryKey({ fields, constraints }: SchemaModel extends ReadonlyMap<string, infer C> ? C : never): boolean {
  return (
    [...fields.values()].some((field) => field.primaryKey) ||
    [...constraints.values()].some((constraint) => constraint.type === 'primaryKey')
  );
}
