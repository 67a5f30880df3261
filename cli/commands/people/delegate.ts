import { Command, Option } from 'clipanion';
import type { Runtime } from '../../../config/load/runtime.ts';
import type { People } from '../../../config/sdk/people.ts';
import { displayText } from '../../../core/display/text.ts';
import { assertNoAgentDecides } from '../../agent.ts';
import { DelegationsCommand } from '../../approvals/command.ts';
import { requiredToken } from '../../approvals/decide.ts';
import type { CommandResult } from '../../base.ts';
import { parseDate } from '../../flag-values.ts';

export default class PeopleDelegate extends DelegationsCommand {
  static override paths = [['people', 'delegate']];
  static override usage = Command.Usage({
    description: 'Lets another person decide in your place until a date.',
    details:
      'You are the owner of SVC_TOKEN. The other person votes where rules name you and not them, once for you, and the record says "bo for ann". ' +
      'The delegation ends by itself, with your token, or with `svc people delegation revoke`. It reaches no request that either of you made, and no override.',
    examples: [
      ['For a holiday', 'svc people delegate --to bo@acme.example --until 2026-12-24'],
      [
        'Without the configuration',
        'svc people delegate --to bo@acme.example --until 2026-12-24 --server https://approvals.acme.example',
      ],
    ],
  });

  to = Option.String('--to', { required: true, description: 'The id of the person who decides in your place.' });
  until = Option.String('--until', {
    required: true,
    description: 'When it ends: a date, which begins at midnight UTC, or a date and time such as 2026-12-24T18:00Z.',
  });

  async workOn(people: Pick<People, 'delegate'>, runtime?: Runtime): Promise<CommandResult> {
    assertNoAgentDecides(runtime);
    const until = parseDate('--until', this.until) ?? new Date(Number.NaN);
    const token = runtime && requiredToken('A delegation', 'Nothing was delegated.');
    const created = await people.delegate({ token, to: this.to, until });
    this.print(`${displayText(created.to)} decides for ${displayText(created.from)} until ${created.until}.`);
    if (Date.parse(created.until) < until.getTime()) this.note('Your token ends then, and the delegation with it.');
    this.note(this.complete(`svc people delegation revoke ${created.delegationId}    ends it`));
    return { data: { ...created } };
  }
}
