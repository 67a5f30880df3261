import { Command, Option } from 'clipanion';
import { serverUrl } from '../approvals/server-client.ts';
import { type CommandResult, SvcCommand } from '../base.ts';
import { removeLogin } from '../people/logins.ts';

export default class Logout extends SvcCommand {
  static override paths = [['logout']];
  static override usage = Command.Usage({
    description: 'Removes your login to a server.',
    details:
      'The token itself stays valid until it ends: `svc people token revoke` revokes one of the store, where the configuration is.',
    examples: [['Log out', 'svc logout https://approvals.acme.example']],
  });

  address = Option.String({ name: 'server' });

  async run(): Promise<CommandResult> {
    this.assertNoConfiguration();
    const server = serverUrl(this.address);
    const removed = removeLogin(server);
    this.print(removed ? `Logged out of ${server}` : `Nobody was logged in to ${server}`);
    return { data: { server, removed } };
  }
}
