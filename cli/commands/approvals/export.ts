import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/approvals.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import { momentOf } from '../../approvals/moments.ts';

export default class ApprovalsExport extends ApprovalsCommand {
  static override paths = [['approvals', 'export']];
  static override usage = Command.Usage({
    description: 'Writes the audit as lines of JSON: every request, decision, delivery and run.',
    details: 'Sensitive parameters are masked.',
    examples: [['Of a year', 'svc approvals export --since 2026-01-01 --before 2027-01-01 > audit.jsonl']],
  });

  since = Option.String('--since', { description: 'Requests made from this date or moment on.' });
  before = Option.String('--before', { description: 'Requests made before this date or moment.' });

  async work(approvals: Approvals): Promise<undefined> {
    const since = momentOf('--since', this.since);
    const before = momentOf('--before', this.before);
    for await (const entry of approvals.export({ ...(since && { since }), ...(before && { before }) })) {
      this.jsonLine(entry);
      if (this.signal.aborted) return;
    }
  }
}
