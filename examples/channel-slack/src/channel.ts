import { type Channel, type Delivery, DeliveryFailed, displayed, displayedJson, shortened } from '@svc/sdk';

export interface SlackOptions {
  /** A bot token, `xoxb-…`, that may `chat:write`. */
  readonly token: string;
  /** The id of the channel, `C…`; the bot is a member. */
  readonly channel: string;
  /** Another base of Slack's API, for tests. */
  readonly api?: string;
}

const LONGEST = 2_900; // of the 3,000 characters that a section takes

/** Posts a message with buttons. Who presses one is told to `slackAnswers`. */
export function slack({ token, channel, api = 'https://slack.com/api' }: SlackOptions): Channel {
  const post = async (message: object, signal: AbortSignal): Promise<void> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json; charset=utf-8' };
    const body = JSON.stringify({ channel, ...message });
    const response = await fetch(`${api}/chat.postMessage`, { method: 'POST', headers, body, signal });
    const afterMs = Number(response.headers.get('retry-after')) * 1000;
    if (!response.ok) throw new DeliveryFailed(`Slack answered ${response.status}`, { afterMs });
    const { ok, error } = (await response.json()) as { ok: boolean; error?: string };
    if (!ok) throw new DeliveryFailed(`Slack answered ${error}`);
  };
  return {
    name: 'slack',
    deliver: (delivery, signal) => post(messageOf(delivery), signal),
    decided({ requestId, status, decidedBy = 'nobody' }, signal) {
      const text = escaped(displayed(`${requestId} is ${status} by ${decidedBy}`));
      return post({ text, blocks: [section(text)] }, signal);
    },
  };
}

function messageOf({ requestId, executionId, callbackUrl, ...asked }: Delivery): object {
  const title = escaped(shortened(`${asked.agentTag} wants to call ${asked.tool}: ${asked.reason}`, 500).text);
  const all = escaped(displayedJson(asked.parameters));
  const isWhole = all.length <= LONGEST;
  const shown = isWhole ? all : `${all.slice(0, LONGEST).replace(/&[a-z]*$/, '')} …`;
  const value = JSON.stringify({ requestId, executionId });
  const elements = [
    ...(isWhole ? [button('approve', value, { style: 'primary' })] : []), // Nobody approves what they were not shown.
    button('reject', value, { style: 'danger' }),
    ...(callbackUrl === undefined ? [] : [button('open', value, { url: callbackUrl })]),
  ];
  const blocks = [title, shown, `${requestId}, until ${asked.timeout}`].map(section);
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
/** `<!channel>` would call everybody. */
const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
