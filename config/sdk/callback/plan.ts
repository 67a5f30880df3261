import type { ApprovalRequest } from '../../../core/approval/request.ts';
import { displayText } from '../../../core/display/text.ts';
import { isPlainObject, type Json } from '../../../core/json.ts';
import { isPlanRequest, type ShownMigration } from '../../../core/migration/plan-approver.ts';
import { type Content, type Html, html } from './html.ts';

/** The plan that a request asks about, as SQL and sentences, above its parameters, which say the same as JSON. */
export function renderPlan(request: Pick<ApprovalRequest, 'agentTag' | 'tool' | 'parameters'>): Content {
  const { losses, warnings, migrations } = request.parameters;
  if (!isPlanRequest(request) || !isTexts(losses) || !isTexts(warnings)) return undefined;
  if (!Array.isArray(migrations) || !migrations.every(isMigration)) return undefined;
  return html`${list('What is lost', losses)}${list('Warnings', warnings)}<h2>Statements</h2>
${migrations.map(renderMigration)}`;
}

const list = (title: string, lines: readonly string[]): Content =>
  lines.length > 0 &&
  html`<h2>${title}</h2>
<ul>${lines.map((line) => html`<li>${displayText(line)}</li>\n`)}</ul>
`;

function renderMigration({ tag, direction, statements, rollback }: ShownMigration): Html {
  const title = `${tag}${direction === 'down' ? ', its rollback' : ''}`;
  return html`<h3>${displayText(title)}</h3>
<pre>${statements.map((text) => displayText(text, { lines: true })).join('\n\n')}</pre>
${rollback !== undefined && html`<p class="muted">Rollback: ${displayText(rollback)}</p>\n`}`;
}

const isTexts = (value: unknown): value is readonly string[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

const isMigration = (value: Json): value is Json & ShownMigration =>
  isPlainObject(value) &&
  typeof value.tag === 'string' &&
  (value.direction === 'up' || value.direction === 'down') &&
  isTexts(value.statements) &&
  (value.rollback === undefined || typeof value.rollback === 'string');
