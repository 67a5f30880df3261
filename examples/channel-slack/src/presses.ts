import type { Presses } from '@svc/sdk';
import { decisionText, escapeHtml, isSignedBy, parseFormDecision, postJson } from '@svc/sdk/channel';
import type { SlackOptions } from './channel.ts';

interface Interaction {
  readonly user: { readonly id: string };
  readonly channel?: { readonly id: string };
  readonly actions: readonly { readonly action_id: string; readonly value: string }[];
  readonly response_url: string;
}

const BUTTONS: ReadonlyMap<string, 'approve' | 'reject'> = new Map([
  ['svc_approve', 'approve'],
  ['svc_reject', 'reject'],
]);
/** Slack expects a response within three seconds. */
const RESPONSE_TIMEOUT_MS = 2_000;
/** A section has at most 3,000 characters. Unescaped, `<!channel>` would notify everybody. */
export const LIMIT = { maxLength: 2_900, escape: escapeHtml };

const interactionOf = (body: Uint8Array) => parseFormDecision(body, 'payload') as Interaction;

/** What Slack sends to its "Interactivity Request URL". */
export const slackPresses = ({ signingSecret, channel }: SlackOptions): Presses => ({
  chats: [channel],
  /** https://api.slack.com/authentication/verifying-requests-from-slack */
  verify(headers, body) {
    const seconds = headers.get('x-slack-request-timestamp') ?? '';
    const signature = headers.get('x-slack-signature')?.replace(/^v0=/, '') ?? '';
    const content = [`v0:${seconds}:`, body];
    return isSignedBy({ secret: signingSecret, content, signature, signedAt: Number(seconds) * 1000 });
  },
  read(body) {
    const { user, channel, actions } = interactionOf(body);
    const pressed = actions.find(({ action_id }) => BUTTONS.has(action_id));
    const button = BUTTONS.get(pressed?.action_id ?? '');
    return pressed && button && { button, requestId: pressed.value, actor: `slack:${user.id}`, chat: channel?.id };
  },
  async show({ decided, text, record }, { actor }, body) {
    const { user, response_url } = interactionOf(body);
    // A result that concerns only the person who pressed is shown only to them.
    const visibility = decided ? { replace_original: true } : { replace_original: false, response_type: 'ephemeral' };
    const result = decided && record ? decisionText(record, LIMIT) : escapeHtml(text);
    const message = { ...visibility, text: result.replace(actor, `<@${user.id}>`) };
    // The decision is already stored, so a failure to post the message is ignored.
    const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
    await postJson(response_url, message, { signal }).catch(() => undefined);
  },
});
