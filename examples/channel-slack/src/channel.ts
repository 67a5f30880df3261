import { type Channel, type Delivery, DeliveryFailed } from '@svc/sdk';
import { decisionText, escapeHtml, noticeText, postJson, requestText } from '@svc/sdk/channel';
import { LIMIT, slackPresses } from './presses.ts';

export interface SlackOptions {
  /** A bot token, `xoxb-…`, with the scope `chat:write`. */
  readonly token: string;
  /** The id of the channel, `C…`. The bot must be a member. */
  readonly channel: string;
  /** The "Signing Secret" of the Slack app, with which it signs button presses. */
  readonly signingSecret: string;
  /** Base URL of Slack's API, for tests. */
  readonly api?: string;
}

/** Posts a message with buttons, receives their presses, and edits the message after the decision. */
export function slack(options: SlackOptions): Channel<string> {
  const { token, channel, api = 'https://slack.com/api' } = options;
  const call = async (method: string, message: object, signal: AbortSignal): Promise<string> => {
    const headers = { authorization: `Bearer ${token}` };
    const body = { channel, ...message };
    const url = `${api}/${method}`;
    const options = { headers, signal, reason: ['error'] };
    const result = await postJson<{ ok: boolean; error?: string; ts: string }>(url, body, options);
    if (!result?.ok) throw new DeliveryFailed(`Slack responded with ${result?.error}`);
    return result.ts;
  };
  return {
    name: 'slack',
    deliver: (delivery, signal) => call('chat.postMessage', messageOf(delivery), signal),
    async notify({ requestId }, notice, signal, [thread]) {
      const text = escapeHtml(`${noticeText(notice)} (${requestId})`);
      const reply = { text, blocks: [section(text)], thread_ts: thread, reply_broadcast: thread !== undefined };
      await call('chat.postMessage', reply, signal);
    },
    async onDecided(record, signal, receipts) {
      const text = decisionText(record, { ...LIMIT, maxLength: LIMIT.maxLength / 2 });
      const blocks = [section(text)];
      await Promise.all(receipts.map((ts) => call('chat.update', { ts, text, blocks }, signal)));
    },
    presses: slackPresses(options),
  };
}

function messageOf(delivery: Delivery): object {
  const { requestId, callbackUrl } = delivery;
  const { title, parameters, footer, buttons } = requestText(delivery, LIMIT);
  const elements = [
    ...buttons.map((text) => button(text, requestId, { style: text === 'approve' ? 'primary' : 'danger' })),
    ...(callbackUrl === undefined ? [] : [button('open', requestId, { url: callbackUrl })]),
  ];
  const blocks = [title, parameters, footer].map(section);
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
