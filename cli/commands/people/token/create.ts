import { Command, Option } from 'clipanion';
import { ownToken } from '../../../../config/load/own-token.ts';
import type { Runtime } from '../../../../config/load/runtime.ts';
import type { Approvals } from '../../../../config/sdk/approvals.ts';
import { assertNoAgentDecides } from '../../../agent.ts';
import { ApprovalsCommand } from '../../../approvals/command.ts';
import type { CommandResult } from '../../../base.ts';
import { parseAge } from '../../../flag-values.ts';

export default class PeopleTokenCreate extends ApprovalsCommand {
  static override paths = [['people', 'token', 'create']];
  static override usage = Command.Usage({
    description: 'Creates a token that proves who decides.',
    details:
      'Prints the token once: the store has a hash of it. Its owner sets it as SVC_TOKEN for `svc approvals approve` and `reject`, ' +
      'or sends it to the callback as `Authorization: Bearer`. To change the groups, create another token and revoke this one. ' +
      'A token of a person who may approve migrations (`environments.<env>.approval`) is created with SVC_TOKEN of another such person, but for the first.',
    examples: [
      ['A token for a quarter', 'svc people token create ann@acme.example --group finance --expires 90d'],
      ['For a script', 'svc people token create ann@acme.example --group finance --expires 90d --json'],
    ],
  });

  principal = Option.String({ name: 'id' });
  groups = Option.Array('--group', [], { description: 'A group of the owner, which rules can name. Repeatable.' });
  expires = Option.String('--expires', { required: true, description: 'How long it is valid: 12h, 90d or 4w.' });

  async work(_: Approvals, runtime: Runtime): Promise<CommandResult> {
    assertNoAgentDecides(runtime);
    const validForMs = parseAge('--expires', this.expires, 'No token was created.');
    const { People } = await import('../../../../config/sdk/people.ts');
    const people = new People(async () => runtime);
    const owner = { id: this.principal, groups: this.groups };
    const created = await people.createToken(owner, { validForMs, by: ownToken() });
    this.print(created.token);
    this.note(`The token ${created.tokenId} of ${created.principal} is valid until ${created.expiresAt}.`);
    this.note('It is not shown again. Give it to its owner only.');
    return { data: { ...created } };
  }
}
