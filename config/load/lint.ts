import type { Connection } from '../../core/dialect.ts';
import { isSvcError } from '../../core/errors.ts';
import { type LintFinding, type LintReport, lint, withRowCounts } from '../../core/lint/lint.ts';
import type { LintRule } from '../../core/lint/rule.ts';
import { rulesFor } from '../../core/lint/rule-sets.ts';
import type { Migration } from '../../core/migration/migration.ts';
import type { LintLevels } from '../define.ts';
import type { Runtime } from './runtime.ts';

/** The levels of an environment come before those of the configuration. */
export const lintLevels = ({ config, env }: Runtime): LintLevels => ({
  ...config.lint,
  ...config.environments?.[env]?.lint,
});

/** Checks the migrations of one database that `includes` selects; the others are only read. */
export async function lintMigrations(
  runtime: Runtime,
  database: string,
  migrations: readonly Migration[],
  includes: (migration: Migration) => boolean,
): Promise<LintReport & { readonly rules: readonly LintRule[] }> {
  const { name: dialect, capabilities } = await runtime.dialectOf(database);
  const rules = await rulesFor((await runtime.kernel()).lintRules, dialect);
  const { transactionalDdl } = capabilities;
  return {
    ...lint(migrations, { dialect, transactionalDdl, rules, levels: lintLevels(runtime), includes }),
    rules,
  };
}

/** Counts the rows of the tables, and lowers the level of what is fast on small ones. */
export const withRows = (
  connection: Pick<Connection, 'count'>,
  findings: readonly LintFinding[],
): Promise<readonly LintFinding[]> =>
  withRowCounts(findings, async (table, limit) => {
    try {
      return await connection.count(table, limit);
    } catch (error) {
      // An earlier migration that is not applied yet creates it.
      if (isSvcError(error) && error.code === 'collection_unknown') return undefined;
      throw error;
    }
  });

/** One line, for a preview: notes are left to `svc db migrate lint`. */
export const lintLines = (findings: readonly LintFinding[], tag: string): readonly string[] =>
  findings
    .filter((finding) => finding.tag === tag && finding.level !== 'note')
    .map(({ rule, level, message, impact }) => `${level} ${rule}: ${message} ${impact}`);
