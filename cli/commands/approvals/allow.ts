import { Command, Option } from 'clipanion';
import { SvcError } from '../../../core/errors.ts';
import { assertNoAgentDecides } from '../../agent.ts';
import { RequestsCommand } from '../../approvals/command.ts';
import { type RequestSource, requiredToken } from '../../approvals/decide.ts';
import { standingLine } from '../../approvals/standing-text.ts';
import type { CommandResult } from '../../base.ts';
import { parseCount, parseDate } from '../../flag-values.ts';

export default class ApprovalsAllow extends RequestsCommand {
  static override paths = [['approvals', 'allow']];
  static override usage = Command.Usage({
    description: 'Lets later calls like an approved one run without a decision.',
    details:
      'You are the owner of SVC_TOKEN, and of the role in `standing` of the rule of the request. The later calls are of the same agent and ' +
      'tool, with the same parameters; --at-most lets a number be lower. What they ran with, and that a standing rule approved it, is in their record. ' +
      'Never for a call with sensitive parameters.',
    examples: [
      [
        'Twenty calls until Christmas, of at most that amount',
        'svc approvals allow apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --uses 20 --until 2026-12-24 --at-most amount=50',
      ],
      [
        'Without the configuration',
        'svc approvals allow apr_0192f0c1-7b1e-7cc0-8f3e-3a1f0d9b2c11 --uses 20 --until 2026-12-24 --server https://approvals.acme.example',
      ],
    ],
  });

  requestId = Option.String();
  uses = Option.String('--uses', { required: true, description: 'How many calls it approves, from 1 to 10,000.' });
  until = Option.String('--until', {
    required: true,
    description: 'When it ends: a date, which begins at midnight UTC, or a date and time such as 2026-12-24T18:00Z.',
  });
  atMost = Option.Array('--at-most', [], {
    description: 'A parameter that may also be lower, and its highest value: amount=50. Repeatable.',
  });

  async workOn({ approvals, runtime }: RequestSource): Promise<CommandResult> {
    assertNoAgentDecides(runtime);
    const uses = parseCount('--uses', this.uses) ?? Number.NaN;
    const until = parseDate('--until', this.until) ?? new Date(Number.NaN);
    const atMost = Object.fromEntries(this.atMost.map(limitOf));
    const token = runtime && requiredToken('A standing rule', 'Later calls need a decision, as before.');
    const created = await approvals.allow({ requestId: this.requestId, uses, until, atMost }, { token });
    this.print(standingLine(created, Date.now()));
    this.note(this.complete(`svc approvals standing revoke ${created.standingId}    ends it`));
    return { data: { ...created } };
  }
}

function limitOf(text: string): [string, number] {
  const [, name = '', value = ''] = /^([^=]+)=(\d+(?:\.\d+)?)$/.exec(text) ?? [];
  if (name !== '') return [name, Number(value)];
  throw new SvcError('usage', `--at-most must be a parameter and a number, such as amount=50, not "${text}".`, {
    state: 'Later calls need a decision, as before.',
  });
}
