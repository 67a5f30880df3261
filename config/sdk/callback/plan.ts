import type { ApprovalRequest } from '../../../core/approval/request.ts';
import { displayText } from '../../../core/display/text.ts';
import type { ShownMigration } from '../../../core/migration/plan-approver.ts';
import { migrationTitle, requestedPlan } from '../../../core/migration/requested-plan.ts';
import { type Content, type Html, html } from './html.ts';

/** The plan that a request asks about, as SQL and sentences, above its parameters, which say the same as JSON. */
export function renderPlan(request: Pick<ApprovalRequest, 'agentTag' | 'tool' | 'parameters'>): Content {
  const plan = requestedPlan(request);
  return (
    plan &&
    html`${list('What is lost', plan.losses)}${list('Warnings', plan.warnings)}<h2>Statements</h2>
${plan.migrations.map(renderMigration)}`
  );
}

const list = (title: string, lines: readonly string[]): Content =>
  lines.length > 0 &&
  html`<h2>${title}</h2>
<ul>${lines.map((line) => html`<li>${displayText(line)}</li>\n`)}</ul>
`;

function renderMigration(migration: ShownMigration): Html {
  const { statements, rollback } = migration;
  return html`<h3>${displayText(migrationTitle(migration))}</h3>
<pre>${statements.map((text) => displayText(text, { lines: true })).join('\n\n')}</pre>
${rollback !== undefined && html`<p class="muted">Rollback: ${displayText(rollback)}</p>\n`}`;
}
