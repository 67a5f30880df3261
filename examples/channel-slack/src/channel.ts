import { type Channel, type Delivery, DeliveryFailed, displayJson, displayText, shortenText } from '@svc/sdk';

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
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=utf-8' };
    const body = JSON.stringify({ channel, ...message });
    const response = await fetch(`${api}/${method}`, { method: 'POST', headers, body, signal });
    const afterMs = Number(response.headers.get('retry-after')) * 1000;
    if (!response.ok) throw new DeliveryFailed(`Slack responded with ${response.status}`, { afterMs });
    const { ok, error, ts } = (await response.json()) as { ok: boolean; error?: string; ts: string };
    if (!ok) throw new DeliveryFailed(`Slack responded with ${error}`);
    return ts;
  };
  return {
    name: 'slack',
    deliver: (delivery, signal) => call('chat.postMessage', messageOf(delivery), signal),
    async onDecided({ requestId, status, decidedBy = 'nobody' }, signal, receipts) {
      const text = escapeMarkup(displayText(`${requestId} is ${status} by ${decidedBy}`));
      for (const ts of receipts) await call('chat.update', { ts, text, blocks: [section(text)] }, signal);
    },
  };
}

function messageOf({ requestId, callbackUrl, ...call }: Delivery): object {
  const title = escapeMarkup(shortenText(`${call.agentTag} wants to call ${call.tool}: ${call.reason}`, 500).text);
  const parameters = escapeMarkup(displayJson(call.parameters));
  const isComplete = parameters.length <= MAX_LENGTH;
  const shown = isComplete ? parameters : `${parameters.slice(0, MAX_LENGTH).replace(/&[a-z]*$/, '')} …`;
  const elements = [
    ...(isComplete ? [button('approve', requestId, { style: 'primary' })] : []), // Nobody can approve parameters that they cannot see.
    button('reject', requestId, { style: 'danger' }),
    ...(callbackUrl === undefined ? [] : [button('open', requestId, { url: callbackUrl })]),
  ];
  const blocks = [title, shown, `${requestId}, until ${call.timeout}`].map(section);
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
const escapeMarkup = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
