import { Command, Option } from 'clipanion';
import { SvcError } from '../../../core/errors.ts';
import { type CommandResult, SvcCommand } from '../../base.ts';

export default class ApprovalsSecret extends SvcCommand {
  static override paths = [['approvals', 'secret']];
  static override usage = Command.Usage({
    description: 'Prints the secret that verifies requests to a webhook.',
    details:
      'It is derived from approvals.callbackKey for that URL, product and environment, and signs requests to a webhook without an entry in approvals.webhook.secrets. Give it to the receiver, and to nobody else.',
    examples: [['Set it in the receiver', 'svc approvals secret https://ops.example/approvals']],
  });

  url = Option.String();

  async run(): Promise<CommandResult> {
    const runtime = await this.runtime();
    const { assertWebhookUrl, configuredSecrets, derivedWebhookSecret } = await import(
      '../../../config/sdk/webhook-secrets.ts'
    );
    assertWebhookUrl(this.url);
    if (configuredSecrets(runtime, this.url) !== undefined) {
      throw new SvcError('config_invalid', 'This webhook has its own secrets.', {
        why: 'approvals.webhook.secrets has an entry for its URL, so no derived secret signs its requests.',
        next: ['Give the receiver a secret of that entry, or remove the entry.'],
        ...(runtime.file !== undefined && { where: runtime.file }),
      });
    }
    const secret = derivedWebhookSecret(runtime, this.url);
    this.print(secret);
    return { data: { url: this.url, product: runtime.product, env: runtime.env, secret } };
  }
}
