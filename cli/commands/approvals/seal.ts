import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../config/load/runtime.ts';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import type { CommandResult } from '../../base.ts';
import { plural } from '../../output.ts';

export default class ApprovalsSeal extends ApprovalsCommand {
  static override paths = [['approvals', 'seal']];
  static override usage = Command.Usage({
    description: 'Signs every event of the audit that is not sealed yet.',
    details:
      'The seals are stored with the requests and in the sinks of approvals.seals. `svc approvals verify` then finds what is changed in the database, also if all hashes were computed again. `svc approvals serve` seals every so often.',
    examples: [
      ['What is new', 'svc approvals seal'],
      ['The key with which others verify', 'svc approvals seal --public-key > seal.pub'],
    ],
  });

  all = Option.Boolean('--all', false, {
    description: 'Looks at every request, and not only at those that may have new events.',
  });
  publicKey = Option.Boolean('--public-key', false, { description: 'Prints the public key, and seals nothing.' });

  async work(approvals: Approvals, runtime: Runtime): Promise<CommandResult> {
    if (this.publicKey) {
      const { requireSealKey } = await import('../../../config/sdk/seals.ts');
      const { id, pem } = requireSealKey(runtime);
      this.print(pem.trimEnd());
      return { data: { id, publicKey: pem } };
    }
    const report = await approvals.seal({ all: this.all });
    const { last, seals, requests, events } = report;
    if (requests > 0) {
      const which = seals === 1 ? `in seal ${last}` : `in the seals ${last - seals + 1} to ${last}`;
      this.print(`${plural(requests, 'request')} with ${plural(events, 'new event')} sealed ${which}`);
    } else this.print(`Nothing is new since seal ${last}.`);
    return { data: { ...report } };
  }
}
