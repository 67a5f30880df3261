import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { locationOf } from '../../config/project/json-text.ts';
import { type LintFinding, MANY_ROWS } from '../../core/lint/lint.ts';
import type { LintRule } from '../../core/lint/rule.ts';
import { version } from '../../core/version.ts';

/** A finding with its place in a file. */
export interface PlacedFinding extends LintFinding {
  readonly database: string;
  readonly file: string;
  readonly line: number;
}

/** The line of the operation in its file; 1 for a migration that is a module. */
export async function lineOf(root: string, file: string, { operation }: LintFinding): Promise<number> {
  if (!/\.json$/i.test(file)) return 1;
  const text = readFileSync(join(root, file), 'utf8');
  const path = operation === undefined ? ['lintIgnore'] : ['up', operation];
  const place = await locationOf({ file, text, code: 'migration_invalid' }, path);
  return Number(/:(\d+):\d+$/.exec(place)?.[1] ?? 1);
}

/** ` (12 rows)`, for a table whose rows were counted. */
export function rowsText({ rows }: LintFinding): string {
  if (rows === undefined) return '';
  const count = rows.toLocaleString('en');
  return rows < MANY_ROWS ? ` (${count} ${rows === 1 ? 'row' : 'rows'})` : ` (${count} rows or more)`;
}

const textOf = (finding: PlacedFinding): string =>
  `${finding.message}${rowsText(finding)} ${finding.impact} ${finding.fix}`;

const LEVELS_OF_GITHUB = { error: 'error', warning: 'warning', note: 'notice' } as const;
const LEVELS_OF_GITLAB = { error: 'major', warning: 'minor', note: 'info' } as const;

/** Workflow commands of GitHub Actions: annotations at the changed lines. */
export function githubAnnotations(findings: readonly PlacedFinding[]): string {
  const escaped = (text: string): string => text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
  const property = (text: string): string => escaped(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
  return findings
    .map(
      (one) =>
        `::${LEVELS_OF_GITHUB[one.level]} file=${property(one.file)},line=${one.line},title=${property(`${one.rule} ${one.name}`)}::${escaped(textOf(one))}`,
    )
    .join('\n');
}

/** A report of GitLab's Code Quality. */
export function gitlabReport(findings: readonly PlacedFinding[]): string {
  const report = findings.map((one) => ({
    description: textOf(one),
    check_name: `${one.rule} ${one.name}`,
    // Stable while the finding is the same, wherever its line moves to.
    fingerprint: createHash('sha256')
      .update(JSON.stringify([one.file, one.rule, one.message]))
      .digest('hex'),
    severity: LEVELS_OF_GITLAB[one.level],
    location: { path: one.file, lines: { begin: one.line } },
  }));
  return JSON.stringify(report, null, 2);
}

/** SARIF 2.1.0, for code scanning. */
export function sarif(findings: readonly PlacedFinding[], rules: readonly LintRule[]): string {
  const used = rules.filter(({ id }) => findings.some(({ rule }) => rule === id));
  const log = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: {
          driver: {
            name: 'svc',
            version,
            rules: used.map(({ id, name, summary, impact, fix, level }) => ({
              id,
              name,
              shortDescription: { text: summary },
              fullDescription: { text: impact },
              help: { text: fix },
              defaultConfiguration: { level },
            })),
          },
        },
        columnKind: 'utf16CodeUnits',
        results: findings.map((one) => ({
          ruleId: one.rule,
          level: one.level,
          message: { text: textOf(one) },
          locations: [
            {
              physicalLocation: {
                artifactLocation: { uri: encodeURI(one.file) },
                region: { startLine: one.line },
              },
            },
          ],
        })),
      },
    ],
  };
  return JSON.stringify(log, null, 2);
}
