import type { Child } from 'hono/jsx';
import type { ApprovalRequest } from '../../../core/approval/request.ts';
import { displayText } from '../../../core/display/text.ts';
import type { ShownMigration } from '../../../core/migration/plan-approver.ts';
import { migrationTitle, planTitle, requestedPlan } from '../../../core/migration/requested-plan.ts';

/** The plan that a request asks about, as SQL and sentences, above its parameters, which say the same as JSON. */
export function renderPlan(request: Pick<ApprovalRequest, 'agentTag' | 'tool' | 'parameters'>): Child {
  const plan = requestedPlan(request);
  return (
    plan && (
      <>
        <h2>Plan</h2>
        <p>{displayText(planTitle(plan))}</p>
        {list('What is lost', plan.losses)}
        {list('Warnings', plan.warnings)}
        <h2>Statements</h2>
        {plan.migrations.map(renderMigration)}
      </>
    )
  );
}

const list = (title: string, lines: readonly string[]): Child =>
  lines.length > 0 && (
    <>
      <h2>{title}</h2>
      <ul>
        {lines.map((line) => (
          <li>{displayText(line)}</li>
        ))}
      </ul>
    </>
  );

function renderMigration(migration: ShownMigration): Child {
  const { statements, rollback } = migration;
  return (
    <>
      <h3>{displayText(migrationTitle(migration))}</h3>
      <pre>{statements.map((text) => displayText(text, { lines: true })).join('\n\n')}</pre>
      {rollback !== undefined && <p class="muted">Rollback: {displayText(rollback)}</p>}
    </>
  );
}
