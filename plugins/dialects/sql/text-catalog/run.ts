import type { RunOutcome, Segment } from '../../../../core/dialect.ts';
import { SvcError } from '../../../../core/errors.ts';
import { type AnyRecordDefinition, anyDefinition, endsElapsed } from '../../../../core/records.ts';
import type { SchemaModel } from '../../../../core/schema/model.ts';
import { lockLostError } from '../../shared/errors.ts';
import { type RecordBackend, recordStore } from '../record-store.ts';
import { writeRecord } from '../record-write.ts';
import { type ExecSql, rowsOf, withLowerCaseNames } from '../session.ts';
import type { TextCatalogStep } from './compile.ts';
import { type CatalogTexts, DefinitionRecorder, definitionsTable } from './definitions.ts';
import type { RunScript, SqlDriver } from './driver.ts';
import { foreignStatements } from './read.ts';
import type { TextCatalogSyntax } from './syntax.ts';

/** What a run needs of a connection. */
interface RunContext {
  readonly syntax: TextCatalogSyntax;
  readonly driver: Pick<SqlDriver, 'transaction' | 'toSvcError' | 'isDuplicate'>;
  backend(exec: ExecSql): RecordBackend;
  readTexts(exec: ExecSql): Promise<CatalogTexts>;
  ensureTable(exec: ExecSql, definition: AnyRecordDefinition): Promise<void>;
  introspect(collections: readonly string[], exec: ExecSql): Promise<SchemaModel>;
}

type Written = RunOutcome['written'][number];

/**
 * `Connection.run` for an engine that rolls DDL back: each segment is a transaction, which also verifies the epoch. An
 * epoch of 0 is that of a caller without the lock.
 */
export async function runSegments(
  context: RunContext,
  segments: readonly Segment<TextCatalogStep>[],
  epoch: number,
  tookMs = 0,
): Promise<RunOutcome> {
  const written: Written[] = [];
  let startedAt = performance.now() - tookMs;
  for (const segment of segments) {
    let at: number | undefined;
    try {
      written.push(
        await context.driver.transaction(
          async (exec, script) => {
            const backend = context.backend(exec);
            if (epoch > 0) await assertEpoch(backend, epoch);
            const recorder = await startRecorder(context, exec, segment);
            for (const [index, { run }] of segment.statements.entries()) {
              at = index;
              await runStep(context, exec, script, run);
              await recorder?.record(run);
            }
            at = undefined;
            await recorder?.write();
            await segment.verify?.((collections) => context.introspect(collections, exec));
            const elapsedMs = performance.now() - startedAt;
            const values: Written[number][] = [];
            for (const write of segment.writes) values.push(await writeRecord(backend, write, elapsedMs));
            return values;
          },
          segment.statements.some(({ run }) => run.rebuilds),
        ),
      );
    } catch (error) {
      const failure = { statement: at, error: context.driver.toSvcError(error), rolledBack: true };
      return { committed: written.length, written, failure };
    }
    if (endsElapsed(segment)) startedAt = performance.now();
  }
  return { committed: written.length, written };
}

async function startRecorder(
  { syntax, backend, readTexts, ensureTable }: RunContext,
  exec: ExecSql,
  { statements }: Segment<TextCatalogStep>,
): Promise<DefinitionRecorder | undefined> {
  if (!syntax.rewritesTexts || statements.length === 0) return undefined;
  await ensureTable(exec, anyDefinition(definitionsTable));
  return DefinitionRecorder.start(recordStore(backend(exec), definitionsTable), () => readTexts(exec));
}

async function assertEpoch(backend: RecordBackend, epoch: number): Promise<void> {
  const current = await rowsOf(backend.exec, `SELECT 1 AS svc_one WHERE ${backend.epochIsCurrent(epoch)}`);
  if (current.length === 0) throw lockLostError();
}

async function runStep(
  { syntax, readTexts, introspect }: RunContext,
  exec: ExecSql,
  script: RunScript,
  { texts, mustBeEmptyBefore = [], mustBeEmpty, recreated, knownFields }: TextCatalogStep,
): Promise<void> {
  if (recreated !== undefined && knownFields)
    assertNothingLost(await introspect([recreated], exec), recreated, knownFields);
  await assertEmpty(exec, mustBeEmptyBefore);
  const foreign =
    recreated === undefined ? [] : foreignStatements(syntax, (await readTexts(exec)).get(recreated) ?? []);
  for (const text of [...texts, ...foreign]) await script(text);
  await assertEmpty(exec, mustBeEmpty);
}

/** The new table has the fields of the model only. */
function assertNothingLost(found: SchemaModel, table: string, known: readonly string[]): void {
  const unknown = [...(found.get(table)?.fields.keys() ?? [])].filter((name) => !known.includes(name));
  if (unknown.length === 0) return;
  throw new SvcError('drift', `The table "${table}" has fields that no migration made: ${unknown.join(', ')}.`, {
    why: 'The engine can make the change only by recreating the table, which would lose their values.',
    next: [
      'svc db schema pull, then svc db migrate baseline    adopts them; then generate the change again',
      'Or drop them by hand, then run the command again.',
    ],
    details: { table, fields: unknown },
  });
}

/** Throws `data_violates` with the `why` of the first row that a query returns. */
export async function assertEmpty(exec: ExecSql, queries: readonly string[]): Promise<void> {
  for (const query of queries) {
    const [violation] = await rowsOf(exec, query);
    if (!violation) continue;
    throw new SvcError('data_violates', 'Rows in the table do not allow the change.', {
      why: String(withLowerCaseNames(violation).why),
      next: ['Correct or delete those rows, or leave the change out.'],
    });
  }
}
