import type { Connection } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { diff } from '../../core/schema/diff.ts';
import type { SchemaModel } from '../../core/schema/model.ts';
import type { Operation } from '../../core/schema/operation.ts';
import type { DeclareConnectedCase } from './dialect-case.ts';
import type { DialectUnderTest, SqlSyntax } from './dialect-under-test.ts';
import { applyMoves, CHOICES, namesFor, randomMoves, type SchemaChoices, type SchemaMove } from './random-schema.ts';
import { assertCatalogMatches, runnerOf } from './run-operations.ts';
import { isLegal, type SupportedOperations } from './supported-operations.ts';

/** A case with random operations, the same each time unless SVC_TEST_SEED says otherwise. */
export function randomSchemaCase(
  on: DeclareConnectedCase,
  engine: DialectUnderTest,
  syntax: SqlSyntax,
  { isUnsupported }: SupportedOperations,
): void {
  const run = runnerOf(engine.dialect);

  on(
    'random schemas and the differences between them read back unchanged',
    'After any legal operations the catalog matches the model. An operation that the engine rejects for another reason than `capabilities.unsupported` fails with a specific code, not with `migration_failed`, and changes nothing.',
    async ({ connection, engine }) => {
      const seed = Number(process.env.SVC_TEST_SEED ?? '20261121');
      const choices: SchemaChoices = {
        ...CHOICES,
        names: namesFor(engine.dialect),
        check: syntax.notNull,
        fields: CHOICES.fields.filter(
          ({ type, precision, scale }) => type !== 'decimal' || (precision !== undefined && scale !== undefined),
        ),
      };
      for (let index = 0; index < (engine.randomSchemas ?? 20); index += 1) {
        const description = `schema ${index} of SVC_TEST_SEED=${seed}`;
        const first = randomMoves(30, seed + index, choices);
        const second = randomMoves(12, -seed - index, choices);
        let model = await runMoves(connection, first, new Map(), choices);
        await assertCatalogMatches(connection, model, description);
        const goal = applyMoves(second, model, choices).model;
        for (const operation of diff(model, goal)) model = (await runIfAccepted(connection, operation, model)) ?? model;
        await assertCatalogMatches(connection, model, `${description}, after the difference`);
        for (const operation of diff(model, new Map()))
          model = (await runIfAccepted(connection, operation, model)) ?? model;
        for (const table of model.keys())
          model = await run(connection, [{ type: 'dropCollection', collection: table, cascade: true }], model);
        await assertCatalogMatches(connection, new Map(), `${description}, emptied`);
      }
    },
    240_000,
  );

  const runMoves = async (
    connection: Connection,
    list: readonly SchemaMove[],
    from: SchemaModel,
    choices: SchemaChoices,
  ) => {
    let model = from;
    for (const operation of applyMoves(list, from, choices).operations)
      model = (await runIfAccepted(connection, operation, model)) ?? model;
    return model;
  };
  /** Runs an operation unless the engine rejects it. The later comparison detects whether a rejected one changed anything. */
  const runIfAccepted = async (connection: Connection, operation: Operation, model: SchemaModel) => {
    // An operation that it depends on was rejected.
    if (!isLegal(operation, model)) return undefined;
    if (isUnsupported(operation, model)) return undefined;
    try {
      return await run(connection, [operation], model);
    } catch (error) {
      // A rejection needs a specific code.
      if (!isSvcError(error)) throw error;
      if (error.code !== 'migration_failed') return undefined;
      throw new Error(`${JSON.stringify(operation)} failed without a specific code: ${error.message} ${error.why}`, {
        cause: error,
      });
    }
  };
}
