import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { SvcError } from '../../../core/errors.ts';
import { ApprovalsCommand } from '../../approvals/decide.ts';
import type { CommandResult } from '../../base.ts';
import { parseDate } from '../../flag-values.ts';

export default class ApprovalsVerify extends ApprovalsCommand {
  static override paths = [['approvals', 'verify']];
  static override usage = Command.Usage({
    description: 'Checks that no stored event of a request was changed, removed, added or moved.',
    details:
      'Each event has the hash of the one before it and of the request as it was then. Somebody who writes to the database and computes ' +
      'the hashes again is not found: compare with an export that is kept elsewhere.',
    examples: [['All requests of a year', 'svc approvals verify --since 2026-01-01 --before 2027-01-01']],
  });

  since = Option.String('--since', { description: 'Requests created at or after this date or time.' });
  before = Option.String('--before', { description: 'Requests created before this date or time.' });

  async work(approvals: Approvals): Promise<CommandResult> {
    const since = parseDate('--since', this.since);
    const before = parseDate('--before', this.before);
    const { checked, broken } = await approvals.verify({ ...(since && { since }), ...(before && { before }) });
    const count = `${checked} ${checked === 1 ? 'request' : 'requests'}`;
    if (broken.length === 0) {
      this.print(`${count} checked: every event fits.`);
      return { data: { checked, broken } };
    }
    for (const { requestId, problems } of broken) for (const text of problems) this.print(`${requestId}  ${text}`);
    throw new SvcError('audit_broken', `${broken.length} of ${count} were changed in the database.`, {
      why: 'Their events do not fit together, or do not match the request.',
      state: 'Nothing was changed by this command.',
      next: ['svc approvals show <requestId>    shows what is stored now'],
      details: { checked, broken },
    });
  }
}
