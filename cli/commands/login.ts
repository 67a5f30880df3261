import { text as readAll } from 'node:stream/consumers';
import { isatty } from 'node:tty';
import { Command, Option } from 'clipanion';
import { ownToken } from '../../config/load/own-token.ts';
import { displayText } from '../../core/display/text.ts';
import { SvcError } from '../../core/errors.ts';
import { assertNoAgentLogsIn } from '../agent.ts';
import { ServerClient, serverUrl } from '../approvals/server-client.ts';
import { type CommandResult, SvcCommand } from '../base.ts';
import { saveLogin } from '../people/logins.ts';
import { promptSecret } from '../prompt.ts';

export default class Login extends SvcCommand {
  static override paths = [['login']];
  static override usage = Command.Usage({
    description: 'Logs you in to a server, to decide requests there.',
    details:
      'The server is approvals.callbackBase of a configuration with approvals.server. In a terminal, you sign in with the browser if the server has approvals.oidc; ' +
      'otherwise it prompts for a token of `svc people token create`. Elsewhere it reads the token from stdin. ' +
      'After that, `svc approvals list`, `show`, `approve`, `reject` and `watch` work with --server, without a configuration and without the password of the database. ' +
      'The token is kept in a file that only you can read.',
    examples: [
      ['Log in', 'svc login https://approvals.acme.example'],
      ['With a token from a file', 'svc login https://approvals.acme.example < token.txt'],
    ],
  });

  address = Option.String({ name: 'server' });
  token = Option.Boolean('--token', false, { description: 'Prompts for a token, also where you could sign in.' });

  async run(): Promise<CommandResult> {
    assertNoAgentLogsIn();
    this.assertNoConfiguration();
    const server = serverUrl(this.address);
    const token = isatty(0) ? await this.#signIn(server) : (await readAll(process.stdin)).trim();
    if (token === '') {
      throw new SvcError('usage', 'The token is missing.', {
        state: 'Nothing was stored.',
        next: ['svc people token create <id> --expires 90d    creates one, where the configuration is'],
      });
    }
    const retry = `svc login ${server}    tries again`;
    const { principal, product, env, expiresAt } = await new ServerClient(server, token, this.signal, retry).me();
    const file = saveLogin({ server, token });
    const groups = principal.groups.map((group) => displayText(group)).join(', ') || 'no groups';
    this.print(`Logged in to ${server} as ${displayText(principal.id)} (${groups})`);
    this.note(`It decides for ${displayText(product)} (${displayText(env)}).`);
    if (expiresAt !== undefined) this.note(`The token ends at ${expiresAt}.`);
    this.note(`It is kept in ${file}.`);
    if (ownToken() !== undefined) this.note('SVC_TOKEN is set, and is used in place of it.');
    return {
      data: { server, product, env, principal, ...(expiresAt !== undefined && { expiresAt }), file },
      nextActions: [`svc approvals list --server ${server}`],
    };
  }

  /** An ID token from the browser, or a token that is typed. */
  async #signIn(server: string): Promise<string> {
    const oidc = this.token ? undefined : await new ServerClient(server, undefined, this.signal, '').signIn();
    if (!oidc) {
      return (await promptSecret(this, { message: 'Token:', flag: 'Pass the token on stdin.' })).trim();
    }
    const [{ oidcLogin }, { openBrowser }] = await Promise.all([
      import('../people/oidc-login.ts'),
      import('../people/open-browser.ts'),
    ]);
    const print = (line: string) => void this.context.stderr.write(`${line}\n`);
    const { idToken } = await oidcLogin(oidc, { openBrowser, print, signal: this.signal });
    return idToken;
  }
}
