import { text as readAll } from 'node:stream/consumers';
import { isatty } from 'node:tty';
import { Command, Option } from 'clipanion';
import { displayText } from '../../core/display/text.ts';
import { SvcError } from '../../core/errors.ts';
import { assertNoAgentDecides } from '../agent.ts';
import { ServerClient, serverUrl } from '../approvals/server-client.ts';
import { type CommandResult, SvcCommand } from '../base.ts';
import { saveLogin } from '../people/logins.ts';
import { promptSecret } from '../prompt.ts';

export default class Login extends SvcCommand {
  static override paths = [['login']];
  static override usage = Command.Usage({
    description: 'Stores your token for a server, to decide requests there.',
    details:
      'The server is approvals.callbackBase of a configuration with approvals.server. Prompts for a token of `svc people token create`, or reads it from stdin. ' +
      'After that, `svc approvals list`, `show`, `approve`, `reject` and `watch` work with --server, without a configuration and without the password of the database. ' +
      'The token is kept in a file that only you can read.',
    examples: [
      ['Log in', 'svc login https://approvals.acme.example'],
      ['With a token from a file', 'svc login https://approvals.acme.example < token.txt'],
    ],
  });

  address = Option.String({ name: 'server' });

  async run(): Promise<CommandResult> {
    assertNoAgentDecides(undefined);
    const server = serverUrl(this.address);
    const token = await this.#token();
    const { principal, product, env, expiresAt } = await new ServerClient(server, token, this.signal).me();
    const file = saveLogin({ server, token });
    const groups = principal.groups.map((group) => displayText(group)).join(', ') || 'no groups';
    this.print(`Logged in to ${server} as ${displayText(principal.id)} (${groups})`);
    this.note(`It decides for ${displayText(product)} (${displayText(env)}).`);
    if (expiresAt !== undefined) this.note(`The token ends at ${displayText(expiresAt)}.`);
    this.note(`It is kept in ${file}.`);
    if (process.env.SVC_TOKEN !== undefined) this.note('SVC_TOKEN is set, and is used in place of it.');
    return {
      data: { server, product, env, principal, ...(expiresAt !== undefined && { expiresAt }), file },
      nextActions: [`svc approvals list --server ${server}`],
    };
  }

  async #token(): Promise<string> {
    const given = isatty(0)
      ? await promptSecret(this, { message: 'Token:', flag: 'Pass the token on stdin.' })
      : await readAll(process.stdin);
    const token = given.trim();
    if (token !== '' && !/\s/.test(token)) return token;
    throw new SvcError('usage', token === '' ? 'The token is missing.' : 'The token contains a space.', {
      state: 'Nothing was stored.',
      next: ['svc people token create <id> --expires 90d    creates one, where the configuration is'],
    });
  }
}
