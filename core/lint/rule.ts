import type { Migration } from '../migration/migration.ts';
import type { SchemaModel } from '../schema/model.ts';
import type { MigrationOperation } from '../schema/operation.ts';
import type { SqlStatement } from './sql-text.ts';

/** `error` fails `svc db migrate lint`. */
export const LINT_LEVELS = ['error', 'warning', 'note'] as const;
export type LintLevel = (typeof LINT_LEVELS)[number];

/** A check of migrations that needs no database. A plugin registers its own in `kernel.lintRules`. */
export interface LintRule {
  /** Capital letters, then digits: `SVC101`. Never reused for another rule. */
  readonly id: string;
  /** Words with hyphens, for people: `index-blocks-writes`. */
  readonly name: string;
  readonly level: LintLevel;
  /** What is wrong, as a sentence. */
  readonly summary: string;
  /** What it does to a running application, or to its data. */
  readonly impact: string;
  /** What to do instead. */
  readonly fix: string;
  /** How bad it is depends on the number of rows: with a database, a small table lowers the level to `note`. */
  readonly scalesWithRows?: true;
  /** What is wrong with one operation. Pure. */
  check(step: LintStep): readonly LintMatch[];
}

/** The rules of one dialect, or of all. */
export interface LintRuleSet {
  /** The dialects the rules apply to; absent for all. */
  readonly dialects?: readonly string[];
  /** Loaded when something is checked. */
  load(): Promise<readonly LintRule[]>;
}

/** One operation of a migration, in its place. */
export interface LintStep {
  readonly dialect: string;
  /** Whether a migration and its history row commit in one transaction. */
  readonly transactionalDdl: boolean;
  readonly migration: Migration;
  readonly operation: MigrationOperation;
  /** The operations before it in the same migration. */
  readonly earlier: readonly MigrationOperation[];
  /** The tables before and after it. A table that the migrations did not create has no fields. */
  readonly before: SchemaModel;
  readonly after: SchemaModel;
  /** The statements of a raw operation of this dialect, if they are SQL; otherwise empty. */
  readonly sql: readonly SqlStatement[];
  /** Whether the table was created by this migration, so that nobody uses it yet. */
  isNew(table: string): boolean;
}

export interface LintMatch {
  /** The table it is about. */
  readonly table?: string;
  /** One sentence that names what was found. */
  readonly message: string;
  /** Instead of the rule's own. */
  readonly fix?: string;
}
