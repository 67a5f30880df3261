import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { parseDate } from '../../flag-values.ts';

export default class ApprovalsExport extends ApprovalsCommand {
  static override paths = [['approvals', 'export']];
  static override printsJsonLines = true;
  static override usage = Command.Usage({
    description: 'Prints the audit as JSON Lines: every request, decision, delivery and run.',
    details: 'Sensitive parameters are masked.',
    examples: [['One year', 'svc approvals export --since 2026-01-01 --before 2027-01-01 > audit.jsonl']],
  });

  since = Option.String('--since', { description: 'Requests created at or after this date or time.' });
  before = Option.String('--before', { description: 'Requests created before this date or time.' });

  async work(approvals: Approvals): Promise<undefined> {
    const since = parseDate('--since', this.since);
    const before = parseDate('--before', this.before);
    let isEmpty = true;
    for await (const entry of approvals.export({ ...(since && { since }), ...(before && { before }) })) {
      this.jsonLine(entry);
      isEmpty = false;
      if (this.signal.aborted) return;
    }
    if (isEmpty) this.note('The audit has no entries.');
  }
}
