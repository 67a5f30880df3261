import type { Segment, Statement } from '../../../../core/dialect.ts';
import type { Constraint } from '../../../../core/schema/model.ts';
import type { StatementFacts } from '../../sql/grammar.ts';
import type { RawSql } from '../../sql/statement.ts';
import type { Traits } from '../variant.ts';
import { quoteIdentifier, quoteLiteral } from './literal.ts';
import type { Violation } from './violations.ts';

/** What a statement does, as the journal stores it. */
export type MysqlStep = StatementPlan | RawSql;
export type MysqlStatement = Statement<MysqlStep>;
export type MysqlSegment = Segment<MysqlStep>;

/** Rendered as SQL right before it is sent. Nothing reads the rendered SQL. */
export type StatementPlan = CreateTable | DropTable | AlterTable | FillColumn | CheckRows;

export interface CreateTable {
  readonly kind: 'createTable';
  readonly table: string;
  /** Before the list of `lines`. */
  readonly head: string;
  /** The columns, keys, indexes and constraints. */
  readonly lines: readonly string[];
  /** After the list, without the table's character set, which depends on the database. */
  readonly options: string;
  /** `options` contains its collation, which determines its character set. */
  readonly hasCollation?: true;
  readonly hasDescendingIndex?: true;
  /** Of its foreign keys. */
  readonly violations?: readonly Violation[];
}

interface DropTable {
  readonly kind: 'dropTable';
  readonly table: string;
}

/** Clauses of one ALTER TABLE. The catalog completes some of them, under the lock. */
export interface AlterTable {
  readonly kind: 'alterTable';
  readonly table: string;
  readonly clauses: readonly AlterClause[];
  /**
   * Fails with `data_violates` if a row meets the condition. With `online`, only a table copy needs this check: online,
   * the server rejects such rows itself.
   */
  readonly rejectRows?: RejectedRows & { readonly online?: true };
  /** Fails with `data_violates` if a column with this definition rejects a value of the enum. */
  readonly convertEnum?: { readonly column: string; readonly lines: readonly string[] };
  /** Rows that the server itself rejects, checked before the first step of a run. */
  readonly violations?: readonly Violation[];
}

/** Sets a column's value where it is NULL, in batches. */
export interface FillColumn {
  readonly kind: 'fillColumn';
  readonly table: string;
  readonly column: string;
  /** An SQL expression. */
  readonly value: string;
}

/** Changes nothing. Fails with `data_violates` if a row meets the condition. */
interface CheckRows extends RejectedRows {
  readonly kind: 'checkRows';
  readonly table: string;
}

/** A condition for rows, and why there must be none. */
export interface RejectedRows {
  readonly condition: string;
  readonly why: string;
  readonly next?: string;
}

export type AlterClause =
  | ModifyColumn
  /** The table check of an array column, whose name the server chose. */
  | { readonly kind: 'dropArrayCheck'; readonly column: string }
  | { readonly kind: 'addArrayCheck'; readonly sql: string }
  | PlainClause;

export const newNameIn = ({ clauses }: AlterTable): string | undefined =>
  clauses.find((clause) => clause.kind === 'renameTable')?.to;

/** A column's new definition. Absent parts stay as they are in the catalog. */
export interface ModifyColumn {
  readonly kind: 'modifyColumn';
  readonly column: string;
  readonly type?: string;
  readonly required?: boolean;
  /** Null drops the default. `currentTimestamp` has the precision of the column. */
  readonly default?: { readonly sql: string } | 'currentTimestamp' | null;
  readonly autoIncrement?: boolean;
  /** Empty for none. */
  readonly comment?: string;
  /** The column's own CHECK, if the type changes. */
  readonly check?: string;
}

/** Needs nothing from the catalog to be rendered. */
export type PlainClause =
  | AddColumn
  | RedefineColumn
  | { readonly kind: 'renameColumn'; readonly from: string; readonly to: string }
  | { readonly kind: 'dropColumn' | 'dropDefault'; readonly column: string }
  | { readonly kind: 'renameTable'; readonly to: string }
  | { readonly kind: 'addConstraint'; readonly type: Constraint['type']; readonly sql: string }
  | {
      readonly kind: 'addIndex';
      readonly name: string;
      readonly unique?: true;
      readonly columns: readonly IndexColumn[];
      /** The definition in the language of the server, in place of the columns. */
      readonly native?: string;
    }
  | { readonly kind: 'renameIndex'; readonly from: string; readonly to: string }
  | { readonly kind: 'dropIndex' | 'dropForeignKey' | 'dropCheck'; readonly name: string }
  | { readonly kind: 'dropPrimaryKey' };

/** With `value`, an SQL expression, if the rows of the table all get it. */
interface AddColumn {
  readonly kind: 'addColumn';
  readonly column: string;
  readonly definition: string;
  readonly value?: string;
}

/** A whole definition. With `addsZeroDefault`, the server adds a default of the date zero to it. */
interface RedefineColumn {
  readonly kind: 'redefineColumn';
  readonly column: string;
  readonly definition: string;
  readonly addsZeroDefault?: true;
}

interface IndexColumn {
  readonly name: string;
  readonly descending?: true;
}

/** `text` is for people. DDL commits by itself, so no plan can be in a transaction. */
export function planned(plan: StatementPlan, text: string, facts: StatementFacts = {}): MysqlStatement {
  return { text, run: plan, transactional: false, destructive: false, ...facts };
}

/** `modifySql`: the text for people of a `modifyColumn` clause, which only the catalog can complete. */
export function alterStatement(
  traits: Traits,
  table: string,
  clauses: readonly AlterClause[],
  facts: StatementFacts = {},
  checks: Pick<AlterTable, 'rejectRows' | 'convertEnum'> = {},
  modifySql = '',
): MysqlStatement {
  const texts = clauses.flatMap((clause) => {
    if (clause.kind === 'modifyColumn') return [modifySql];
    return clause.kind === 'dropArrayCheck' || clause.kind === 'addArrayCheck' ? [] : [clauseSql(traits, clause)];
  });
  return planned({ kind: 'alterTable', table, clauses, ...checks }, alterText(table, texts), facts);
}

export function withViolations(statement: MysqlStatement, violations: readonly Violation[]): MysqlStatement {
  const { run } = statement;
  if (run.kind !== 'alterTable') throw new Error(`${run.kind} changes no rows`);
  return { ...statement, run: { ...run, violations } };
}

export function alterSql(traits: Traits, table: string, clauses: readonly PlainClause[]): string {
  return alterText(
    table,
    clauses.map((clause) => clauseSql(traits, clause)),
  );
}

const alterText = (table: string, clauses: readonly string[]): string =>
  `ALTER TABLE ${quoteIdentifier(table)} ${clauses.join(', ')}`;

function clauseSql({ dropCheck }: Traits, clause: PlainClause): string {
  switch (clause.kind) {
    case 'addColumn':
      return `ADD COLUMN ${clause.definition}`;
    case 'redefineColumn':
      return `MODIFY COLUMN ${clause.definition}`;
    case 'renameColumn':
      return `RENAME COLUMN ${quoteIdentifier(clause.from)} TO ${quoteIdentifier(clause.to)}`;
    case 'dropColumn':
      return `DROP COLUMN ${quoteIdentifier(clause.column)}`;
    case 'dropDefault':
      return `ALTER COLUMN ${quoteIdentifier(clause.column)} DROP DEFAULT`;
    case 'renameTable':
      return `RENAME TO ${quoteIdentifier(clause.to)}`;
    case 'addConstraint':
    case 'addIndex':
      return `ADD ${additionSql(clause)}`;
    case 'renameIndex':
      return `RENAME INDEX ${quoteIdentifier(clause.from)} TO ${quoteIdentifier(clause.to)}`;
    case 'dropIndex':
      return `DROP INDEX ${quoteIdentifier(clause.name)}`;
    case 'dropForeignKey':
      return `DROP FOREIGN KEY ${quoteIdentifier(clause.name)}`;
    case 'dropCheck':
      return `${dropCheck} ${quoteIdentifier(clause.name)}`;
    case 'dropPrimaryKey':
      return 'DROP PRIMARY KEY';
  }
}

type Addition = Extract<PlainClause, { readonly kind: 'addConstraint' | 'addIndex' }>;

/** As it follows ADD, and as a line of CREATE TABLE. */
function additionSql(clause: Addition): string {
  if (clause.kind === 'addConstraint') return clause.sql;
  const columns = clause.columns.map(({ name, descending }) => quoteIdentifier(name) + (descending ? ' DESC' : ''));
  const [, kind = '', definition = ''] = /^(FULLTEXT |SPATIAL )?(.*)$/is.exec(clause.native ?? '') ?? [];
  return `${clause.unique ? 'UNIQUE ' : kind}INDEX ${quoteIdentifier(clause.name)} ${definition || `(${columns.join(', ')})`}`;
}

export const isDescendingIndex = (clause: AlterClause): boolean =>
  clause.kind === 'addIndex' && clause.columns.some(({ descending }) => descending);

export const createTableSql = ({ head, lines, options }: CreateTable): string =>
  `${head} (\n  ${lines.join(',\n  ')}\n)${options}`;

/** The server copies the table to add a check or a foreign key, even one without rows. */
export function mergeIntoCreation(creation: MysqlStatement, addition: MysqlStatement): MysqlStatement | undefined {
  const [create, alter] = [creation.run, addition.run];
  if (create.kind !== 'createTable' || alter.kind !== 'alterTable' || create.table !== alter.table) return undefined;
  const added = alter.clauses.flatMap((one) => (one.kind === 'addConstraint' || one.kind === 'addIndex' ? [one] : []));
  if (added.length < alter.clauses.length || alter.rejectRows || alter.convertEnum) return undefined;
  const violations = [...(create.violations ?? []), ...(alter.violations ?? []).filter((one) => one.foreignKey)];
  const run: CreateTable = {
    ...create,
    lines: [...create.lines, ...added.map(additionSql)],
    ...(added.some(isDescendingIndex) && { hasDescendingIndex: true }),
    ...(violations.length > 0 && { violations }),
  };
  return { ...creation, text: createTableSql(run), run };
}

export const dropTableSql = (table: string): string => `DROP TABLE ${quoteIdentifier(table)}`;

export function fillStatement(table: string, column: string, value: string): MysqlStatement {
  const name = quoteIdentifier(column);
  return planned(
    { kind: 'fillColumn', table, column, value },
    `UPDATE ${quoteIdentifier(table)} SET ${name} = ${value} WHERE ${name} IS NULL`,
    { idempotent: true },
  );
}

/** A query that returns a row if the catalog contains exactly these names: its own comparison ignores case. */
export function existsQuery(view: string, table: string, names: Readonly<Record<string, string>> = {}): string {
  const schema = view === 'referential_constraints' ? 'constraint_schema' : 'table_schema';
  const conditions = Object.entries({ table_name: table, ...names }).map(
    ([column, name]) => `CAST(${column} AS BINARY) = CAST(${quoteLiteral(name)} AS BINARY)`,
  );
  return `SELECT 1 FROM information_schema.${view} WHERE ${schema} = DATABASE() AND ${conditions.join(' AND ')} LIMIT 1`;
}

export const missingQuery = (...queries: readonly string[]): string =>
  `SELECT 1 FROM DUAL WHERE ${queries.map((query) => `NOT EXISTS (${query})`).join(' AND ')}`;

/** The options with which a table stores every character. A utf8mb4 database already has them. */
export function tableCharset(databaseCharset: string, collation: string): string {
  return databaseCharset === 'utf8mb4' ? '' : ` DEFAULT CHARACTER SET utf8mb4 COLLATE ${collation}`;
}
