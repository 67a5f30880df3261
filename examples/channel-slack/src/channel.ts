import { type Channel, type Delivery, DeliveryFailed, displayJson, displayText, shortenText } from '@svc/sdk';
import { postJson } from '@svc/sdk/channel';

export interface SlackOptions {
  /** A bot token, `xoxb-…`, with the scope `chat:write`. */
  readonly token: string;
  /** The id of the channel, `C…`. The bot must be a member. */
  readonly channel: string;
  /** Base URL of Slack's API, for tests. */
  readonly api?: string;
}

const MAX_LENGTH = 2_900; // The limit of a section is 3,000 characters.

/** Posts a message with buttons, and edits it after the decision. `slackInteractions` receives the button presses. */
export function slack({ token, channel, api = 'https://slack.com/api' }: SlackOptions): Channel<string> {
  const call = async (method: string, message: object, signal: AbortSignal): Promise<string> => {
    const options = { headers: { authorization: `Bearer ${token}` }, signal };
    const body = { channel, ...message };
    const result = await postJson<{ ok: boolean; error?: string; ts: string }>(`${api}/${method}`, body, options);
    if (!result?.ok) throw new DeliveryFailed(`Slack responded with ${result?.error}`);
    return result.ts;
  };
  return {
    name: 'slack',
    deliver: (delivery, signal) => call('chat.postMessage', messageOf(delivery), signal),
    async onDecided({ requestId, status, decidedBy = 'nobody', ...asked }, signal, receipts) {
      const text = escapeMarkup(displayText(`${requestId} is ${status} by ${decidedBy}`));
      const blocks = [text, callText(asked)].map(section);
      for (const ts of receipts) await call('chat.update', { ts, text, blocks }, signal);
    },
  };
}

/** What was to be called, for the message about its decision. */
export const callText = ({ tool, parameters }: Pick<Delivery, 'tool' | 'parameters'>): string =>
  `${escapeMarkup(displayText(tool))} ${displayJson(parameters, { maxLength: MAX_LENGTH / 2, escape: escapeMarkup }).text}`;

function messageOf({ requestId, callbackUrl, masked, ...call }: Delivery): object {
  const { agentTag, tool, product, env, reason } = call;
  const title = escapeMarkup(
    shortenText(`${agentTag} wants to call ${tool} in ${product}, ${env}: ${reason}`, 500).text,
  );
  const { text, complete } = displayJson(call.parameters, { maxLength: MAX_LENGTH, escape: escapeMarkup });
  const elements = [
    ...(complete && !masked ? [button('approve', requestId, { style: 'primary' })] : []), // Nobody can approve parameters that they cannot see.
    ...(masked ? [] : [button('reject', requestId, { style: 'danger' })]),
    ...(callbackUrl === undefined ? [] : [button('open', requestId, { url: callbackUrl })]),
  ];
  const blocks = [title, text, `${requestId}, until ${call.timeout}`].map(section);
  return { text: title, blocks: [...blocks, { type: 'actions', elements }] };
}

const section = (text: string) => ({ type: 'section', text: { type: 'plain_text', text, emoji: false } });
const button = (text: string, value: string, more: object) => ({
  type: 'button',
  action_id: `svc_${text}`,
  text: { type: 'plain_text', text },
  value,
  ...more,
});
/** Unescaped, `<!channel>` would notify everybody. */
export const escapeMarkup = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
