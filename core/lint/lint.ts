import { isSvcError } from '../errors.ts';
import { affectedCollections } from '../migration/affected-collections.ts';
import type { Migration } from '../migration/migration.ts';
import { MigrationReplay } from '../migration/replay.ts';
import { isObjectOperation } from '../schema/database-object.ts';
import type { Collection, SchemaModel } from '../schema/model.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import type { LintLevel, LintRule, LintStep } from './rule.ts';
import { createdTables, sqlStatements } from './sql-text.ts';

export interface LintFinding {
  readonly tag: string;
  /** The index in `up`; undefined if it is about the whole migration. */
  readonly operation: number | undefined;
  readonly rule: string;
  readonly name: string;
  readonly level: LintLevel;
  readonly message: string;
  readonly impact: string;
  readonly fix: string;
  readonly table?: string;
  /** The name of the table before the migrations that are reported on, if one of them renames it. */
  readonly formerTable?: string;
  /** How bad it is depends on the number of rows. */
  readonly scalesWithRows?: true;
  /** Rows of the table, counted up to `MANY_ROWS`. Only with a database. */
  readonly rows?: number;
}

/** A finding that the migration says to ignore. */
export interface IgnoredFinding extends LintFinding {
  readonly reason: string;
}

export interface LintReport {
  readonly findings: readonly LintFinding[];
  readonly ignored: readonly IgnoredFinding[];
}

export interface LintOptions {
  readonly dialect: string;
  readonly transactionalDdl: boolean;
  readonly rules: readonly LintRule[];
  /** By id or name; `off` leaves a rule out. */
  readonly levels?: Readonly<Record<string, LintLevel | 'off'>>;
  /** Which migrations to report on; the others are only read. Default: all. */
  readonly includes?: (migration: Migration) => boolean;
}

/** With fewer rows, an operation whose cost depends on them is fast. */
export const MANY_ROWS = 10_000;

/** Checks migrations in the order of their tags. Uses no database. */
export function lint(migrations: readonly Migration[], options: LintOptions): LintReport {
  const replay = new LintReplay(options.dialect);
  const formerNames = new Map<string, string>();
  const findings: LintFinding[] = [];
  const ignored: IgnoredFinding[] = [];
  for (const migration of migrations) {
    const isIncluded = options.includes?.(migration) ?? true;
    const found = lintMigration(migration, replay, options, isIncluded ? formerNames : undefined);
    if (!isIncluded) continue;
    const unused = new Set(migration.lintIgnore ?? []);
    for (const finding of found) {
      const entry = migration.lintIgnore?.find(
        ({ rule, operation }) =>
          (rule === finding.rule || rule === finding.name) &&
          (operation === undefined || operation === finding.operation),
      );
      if (entry === undefined) findings.push(finding);
      else {
        unused.delete(entry);
        ignored.push({ ...finding, reason: entry.reason });
      }
    }
    for (const { rule } of unused) findings.push(unusedIgnore(migration, rule));
  }
  return { findings, ignored };
}

function lintMigration(
  migration: Migration,
  replay: LintReplay,
  options: LintOptions,
  /** The names before the reported migrations, by the present ones; undefined if the migration is only read. */
  formerNames: Map<string, string> | undefined,
): readonly LintFinding[] {
  const { dialect, transactionalDdl, rules, levels = {} } = options;
  const created = new Set<string>();
  const found: LintFinding[] = [];
  for (const [index, operation] of migration.up.entries()) {
    replay.apply(operation, `${migration.tag} up[${index}]`);
    for (const table of tablesCreatedBy(operation)) created.add(table);
    if (!formerNames) continue;
    const step: LintStep = {
      dialect,
      transactionalDdl,
      migration,
      operation,
      get earlier() {
        return migration.up.slice(0, index);
      },
      before: replay.before,
      after: replay.after,
      sql: operation.type === 'raw' && operation.dialect === dialect ? sqlStatements(operation.statement) : [],
      isNew: (table) => created.has(table),
    };
    for (const rule of rules) {
      const level = levels[rule.id] ?? levels[rule.name] ?? rule.level;
      if (level === 'off') continue;
      for (const { table, message, fix = rule.fix } of rule.check(step)) {
        found.push({
          tag: migration.tag,
          operation: index,
          rule: rule.id,
          name: rule.name,
          level,
          message,
          impact: rule.impact,
          fix,
          ...(table !== undefined && { table }),
          ...(table !== undefined && formerNames.has(table) && { formerTable: formerNames.get(table) ?? table }),
          ...(rule.scalesWithRows && { scalesWithRows: true }),
        });
      }
    }
    if (operation.type === 'renameCollection')
      formerNames.set(operation.to, formerNames.get(operation.collection) ?? operation.collection);
  }
  return found;
}

/** The schema before and after the last operation. Copying all tables for each would take too long for thousands. */
class LintReplay {
  readonly #replay: MigrationReplay;
  readonly #before = new Map<string, Collection>();
  #changed: readonly string[] | 'all' = [];

  constructor(dialect: string) {
    this.#replay = new MigrationReplay(dialect);
  }

  get before(): SchemaModel {
    return this.#before;
  }

  get after(): SchemaModel {
    return this.#replay.model;
  }

  apply(operation: MigrationOperation, where: string): void {
    this.#catchUp();
    this.#changed = changedTables(operation);
    try {
      this.#replay.apply(operation);
    } catch (error) {
      throw isSvcError(error) ? error.with({ where }) : error;
    }
  }

  /** Brings `before` to the state after the operation before. */
  #catchUp(): void {
    const { model } = this.#replay;
    if (this.#changed === 'all') this.#before.clear();
    for (const name of this.#changed === 'all' ? model.keys() : this.#changed) {
      const table = model.get(name);
      if (table) this.#before.set(name, table);
      else this.#before.delete(name);
    }
  }
}

/** The tables that an operation may change: a renamed or dropped one also changes those that reference it. */
function changedTables(operation: MigrationOperation): readonly string[] | 'all' {
  switch (operation.type) {
    case 'renameCollection':
    case 'dropCollection':
    case 'renameField':
    case 'raw':
      return 'all';
    default:
      return affectedCollections(operation);
  }
}

function tablesCreatedBy(operation: MigrationOperation): readonly string[] {
  if (isObjectOperation(operation)) return [];
  if (operation.type === 'createCollection') return [operation.name];
  // Nobody else knows the new name yet, but the rows are those of the old table.
  if (operation.type !== 'raw') return [];
  const made = operation.makes?.flatMap((one) => (one.type === 'createCollection' ? [one.name] : [])) ?? [];
  return [...made, ...createdTables(sqlStatements(operation.statement)).map(({ table }) => table)];
}

/**
 * Adds the rows of the tables, and lowers the level of what is fast on small ones. `count` counts up to a limit; undefined
 * for a table that does not exist yet.
 */
export async function withRowCounts(
  findings: readonly LintFinding[],
  count: (table: string, limit: number) => Promise<number | undefined>,
): Promise<readonly LintFinding[]> {
  const counts = new Map<string, number>();
  const counted: LintFinding[] = [];
  for (const finding of findings) {
    const { scalesWithRows, formerTable, table } = finding;
    if (table === undefined || !scalesWithRows) {
      counted.push(finding);
      continue;
    }
    const present = formerTable ?? table;
    const rows = counts.get(present) ?? (await count(present, MANY_ROWS)) ?? 0;
    counts.set(present, rows);
    counted.push({ ...finding, rows, ...(rows < MANY_ROWS && { level: 'note' as const }) });
  }
  return counted;
}

const unusedIgnore = ({ tag }: Migration, rule: string): LintFinding => ({
  tag,
  operation: undefined,
  rule: 'SVC001',
  name: 'unused-ignore',
  level: 'warning',
  message: `"lintIgnore" names "${rule}", which finds nothing here.`,
  impact: 'A later change of the migration could be ignored by mistake.',
  fix: 'Remove the entry from "lintIgnore", or correct the id.',
});
