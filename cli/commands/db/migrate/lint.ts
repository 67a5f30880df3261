import { Command, Option } from 'clipanion';
import { lintLevels, lintMigrations, withRows } from '../../../../config/load/lint.ts';
import type { MigrationFile } from '../../../../config/project/migration-files.ts';
import { SvcError } from '../../../../core/errors.ts';
import type { IgnoredFinding, LintFinding } from '../../../../core/lint/lint.ts';
import { LINT_LEVELS, type LintRule } from '../../../../core/lint/rule.ts';
import { status } from '../../../../core/migration/status.ts';
import { nearest } from '../../../../core/nearest.ts';
import type { CommandResult } from '../../../base.ts';
import { DatabaseCommand } from '../../../db/command.ts';
import {
  githubAnnotations,
  gitlabReport,
  lineOf,
  type PlacedFinding,
  rowsText,
  sarif,
} from '../../../db/lint-report.ts';
import { parseCount } from '../../../flag-values.ts';
import { oneLine, plural } from '../../../output.ts';

const FORMATS = ['text', 'github', 'gitlab', 'sarif'] as const;
type Format = (typeof FORMATS)[number];

export default class Lint extends DatabaseCommand {
  static override paths = [['db', 'migrate', 'lint']];
  static override usage = Command.Usage({
    description: 'Finds migrations that would block, break or destroy something.',
    details:
      'Reads the migration files only, without connecting to a database. With --pending it checks the migrations that are not applied yet, and counts the rows of their tables: what is fast on a small table becomes a note. Exits with 1 if it finds an error. docs/reference/lint.md lists the rules; "lintIgnore" in a migration file accepts a finding, with a reason.',
    examples: [
      ['All migration files', 'svc db migrate lint'],
      ['What is about to run in production, with row counts', 'svc db migrate lint --pending --env prd'],
      [
        'In a pull request on GitHub: the migrations that it adds',
        'svc db migrate lint --since 20261120_103000_orders --format github',
      ],
    ],
  });

  pending = Option.Boolean('--pending', false, {
    description: 'Only migrations that are not applied yet; connects to the database.',
  });
  since = Option.String('--since', { description: 'Only migrations after this one.' });
  latest = Option.String('--latest', { description: 'Only the last <count> migrations.' });
  strict = Option.Boolean('--strict', false, { description: 'Also exits with 1 for warnings.' });
  format = Option.String('--format', 'text', {
    description: `${FORMATS.join(', ')}. gitlab is a Code Quality report, sarif is version 2.1.0.`,
  });

  async run(): Promise<CommandResult> {
    const format = this.#format();
    const latest = parseCount('--latest', this.latest);
    if (this.since !== undefined) await this.singleTag('--since');
    const findings: PlacedFinding[] = [];
    const ignored: (IgnoredFinding & { readonly database: string; readonly file: string })[] = [];
    const rules = new Map<string, LintRule>();
    let checked = 0;
    for (const tag of await this.databaseTags()) {
      const found = await this.#lint(tag, latest);
      checked += found.checked;
      findings.push(...found.findings);
      ignored.push(...found.ignored);
      for (const rule of found.rules) rules.set(rule.id, rule);
    }
    await this.#assertLevelsKnown(rules.values());
    this.#print(format, findings, ignored.length, [...rules.values()], checked);
    const fails = findings.some(({ level }) => level === 'error' || (this.strict && level === 'warning'));
    return { data: { checked, findings, ignored }, ...(fails && { code: 'lint_failed', exit: 1 }) };
  }

  async #lint(tag: string, latest: number | undefined) {
    const runtime = await this.runtime();
    const files = await this.migrations(tag);
    const pending = this.pending ? await this.#pendingTags(tag, files) : undefined;
    const chosen = this.#chosen(files, latest).filter((one) => pending?.has(one) ?? true);
    const { rules, ...report } = await lintMigrations(
      runtime,
      tag,
      files.map(({ migration }) => migration),
      (migration) => chosen.includes(migration.tag),
    );
    const findings = this.pending ? await this.#withRows(tag, report.findings) : report.findings;
    const fileOf = new Map(files.map(({ tag, file }) => [tag, file]));
    const placed: PlacedFinding[] = [];
    for (const finding of findings) {
      const file = fileOf.get(finding.tag) ?? '';
      placed.push({ database: tag, file, line: await lineOf(runtime.root, file, finding), ...finding });
    }
    const ignored = report.ignored.map((one) => ({ database: tag, file: fileOf.get(one.tag) ?? '', ...one }));
    return { checked: chosen.length, findings: placed, ignored, rules };
  }
  /** A level for a rule that does not exist would have no effect. */
  async #assertLevelsKnown(rules: Iterable<LintRule>): Promise<void> {
    const runtime = await this.runtime();
    const known = [...rules].flatMap(({ id, name }) => [id, name]);
    const unknown = this.db === undefined && Object.keys(lintLevels(runtime)).find((key) => !known.includes(key));
    if (typeof unknown !== 'string') return;
    const near = nearest(unknown, known);
    throw new SvcError('config_invalid', `"lint" names the rule "${unknown}", which does not exist.`, {
      next: [near === undefined ? 'Use an id of docs/reference/lint.md.' : `Did you mean "${near}"?`],
      ...(runtime.file !== undefined && { where: runtime.file }),
    });
  }

  #format(): Format {
    const format = FORMATS.find((one) => one === this.format);
    if (format !== undefined && !(this.json && format !== 'text')) return format;
    throw new SvcError(
      'usage',
      format === undefined ? `"${this.format}" is not a format.` : '--json has its own format.',
      {
        next: [`--format ${FORMATS.join(' | ')}`],
      },
    );
  }

  /** The tags that --since and --latest select. */
  #chosen(files: readonly MigrationFile[], latest: number | undefined): readonly string[] {
    const { since } = this;
    if (since !== undefined && !files.some(({ tag }) => tag === since)) {
      throw new SvcError('migration_unknown', `No migration file has the tag "${since}".`, {
        next: ['svc db migrate status'],
      });
    }
    const tags = files.map(({ tag }) => tag).filter((tag) => since === undefined || tag > since);
    return latest === undefined ? tags : tags.slice(-latest);
  }

  async #pendingTags(tag: string, files: readonly MigrationFile[]): Promise<ReadonlySet<string>> {
    const target = await this.connect(tag);
    const { entries } = await status(target, files);
    await target.connection.close();
    return new Set(entries.flatMap((entry) => (entry.state === 'completed' ? [] : [entry.tag])));
  }

  async #withRows(tag: string, findings: readonly LintFinding[]): Promise<readonly LintFinding[]> {
    const { connection } = await this.connect(tag);
    const counted = await withRows(connection, findings);
    await connection.close();
    return counted;
  }

  #print(
    format: Format,
    findings: readonly PlacedFinding[],
    ignored: number,
    rules: readonly LintRule[],
    checked: number,
  ): void {
    switch (format) {
      case 'github':
        if (findings.length > 0) this.print(githubAnnotations(findings));
        break;
      case 'gitlab':
        this.print(gitlabReport(findings));
        break;
      case 'sarif':
        this.print(sarif(findings, rules));
        break;
      case 'text':
        for (const line of this.#lines(findings)) this.print(line);
        break;
      default:
        format satisfies never;
    }
    const counts = LINT_LEVELS.map((level) => plural(findings.filter((one) => one.level === level).length, level));
    this.note(
      `${counts.join(', ')} in ${plural(checked, 'migration')}${ignored > 0 ? `; ${plural(ignored, 'finding')} ignored` : ''}`,
    );
  }

  *#lines(findings: readonly PlacedFinding[]): Generator<string> {
    const { red, yellow, dim, bold } = this.colors;
    const colors = { error: red, warning: yellow, note: dim };
    let file = '';
    for (const finding of findings) {
      if (finding.file !== file) yield bold(oneLine(finding.file));
      file = finding.file;
      const { level, rule, name, message, impact, fix, line } = finding;
      yield `  ${colors[level](level.padEnd(7))} ${rule} ${name}  ${dim(`line ${line}`)}`;
      for (const text of [`${message}${rowsText(finding)}`, impact]) yield `          ${oneLine(text)}`;
      yield `          ${dim('fix')} ${oneLine(fix)}`;
    }
  }
}
