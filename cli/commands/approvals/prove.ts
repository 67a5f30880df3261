import { Command, Option } from 'clipanion';
import type { Approvals } from '../../../config/sdk/approvals.ts';
import { ApprovalsCommand } from '../../approvals/command.ts';
import type { CommandResult } from '../../base.ts';

export default class ApprovalsProve extends ApprovalsCommand {
  static override paths = [['approvals', 'prove']];
  static override usage = Command.Usage({
    description: 'Prints a proof of what was requested and what happened, as JSON.',
    details:
      'With the public key it is verified without the database: svc approvals verify --proof. The call itself is not in the proof if it has sensitive parameters.',
    examples: [['For an auditor', 'svc approvals prove apr_0198c0de-… > proof.json']],
  });

  requestId = Option.String();

  async work(approvals: Approvals): Promise<CommandResult> {
    const proof = await approvals.prove(this.requestId);
    this.print(JSON.stringify(proof, undefined, 2));
    return { data: { ...proof } };
  }
}
