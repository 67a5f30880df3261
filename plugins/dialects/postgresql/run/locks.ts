import type { Statement, StatementLock } from '../../../../core/dialect.ts';
import { isObjectOperation } from '../../../../core/schema/database-object.ts';
import type { MigrationOperation } from '../../../../core/schema/operation.ts';
import { PresentNames } from '../../sql/present-names.ts';
import type { ExecSql } from '../../sql/session.ts';
import { quoteIdentifier } from '../compile/grammar.ts';
import type { PostgresqlStep } from '../compile/step.ts';
import { estimateRows } from './row-count.ts';

type Effect = Pick<StatementLock, 'blocks' | 'work'>;

const MOMENT: Effect = { blocks: 'reads and writes', work: 'none' };

const REWRITE: Effect = { blocks: 'reads and writes', work: 'write' };

/** The first that matches. Source: "Explicit Locking" and the notes of the statements in the manual of PostgreSQL. */
const EFFECTS: readonly (readonly [pattern: RegExp, effect: Effect])[] = [
  [
    /^(?:SELECT FROM|CREATE (?:UNIQUE )?INDEX CONCURRENTLY|ALTER TABLE .* VALIDATE CONSTRAINT)/s,
    { blocks: 'nothing', work: 'read' },
  ],
  [/^UPDATE /, { blocks: 'nothing', work: 'write' }],
  [/^(?:DROP INDEX CONCURRENTLY|COMMENT ON)/, { blocks: 'nothing', work: 'none' }],
  [/^CREATE (?:UNIQUE )?INDEX/, { blocks: 'writes', work: 'read' }],
  [/FOREIGN KEY .*NOT VALID$/s, { blocks: 'writes', work: 'none' }],
  [/FOREIGN KEY/, { blocks: 'writes', work: 'read' }],
  [/(?:NOT VALID|USING INDEX .*)$/s, MOMENT],
  [/ADD COLUMN \S+ .*(?:DEFAULT \(|gen_random_uuid\(\)|AS IDENTITY|serial\b|STORED\b)/s, REWRITE],
  [/ADD CONSTRAINT|SET NOT NULL/, { blocks: 'reads and writes', work: 'read' }],
];

const ROWS_PER_SECOND = { none: Infinity, read: 1_000_000, write: 100_000 };
/** Fewer are fast enough for any lock. */
const MANY_ROWS = 10_000;

/** What the statements do to those who use tables with many rows. `schema` is quoted, with its dot. */
export async function findLocks(
  exec: ExecSql,
  schema: string,
  statements: readonly Statement<PostgresqlStep>[],
  operations: readonly MigrationOperation[],
): Promise<readonly StatementLock[]> {
  const names = new PresentNames();
  const counted = new Map<string, number>();
  const locks: StatementLock[] = [];
  for (const [index, { text, run }] of statements.entries()) {
    const operation = operations[index];
    if (!operation || operation.type === 'raw' || isObjectOperation(operation)) continue;
    const table = 'collection' in operation ? names.table(operation.collection)?.name : undefined;
    if (operation !== operations[index + 1]) names.follow(operation);
    if (table === undefined) continue;
    const rows = counted.get(table) ?? (await estimateRows(exec, `${schema}${quoteIdentifier(table)}`));
    counted.set(table, rows);
    if (rows <= MANY_ROWS) continue;
    const writesAll = run.kind === 'sql' && (run.copies !== undefined || run.rewrites === true);
    const isKnown = / SET NOT NULL$/.test(text) && / VALIDATE CONSTRAINT /.test(statements[index - 1]?.text ?? '');
    const effect = writesAll ? REWRITE : isKnown ? MOMENT : effectOf(text);
    const seconds = Math.ceil(rows / ROWS_PER_SECOND[effect.work]);
    locks.push({ statement: index, collection: table, ...effect, rows, seconds });
  }
  return locks;
}

/** Names and values may look like words of the language. */
function effectOf(text: string): Effect {
  const words = text.replace(/"(?:[^"]|"")*"/g, '"name"').replace(/'(?:[^']|'')*'/g, "'value'");
  return EFFECTS.find(([pattern]) => pattern.test(words))?.[1] ?? MOMENT;
}
