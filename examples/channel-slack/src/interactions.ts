import type { Svc } from '@svc/sdk';
import { decisionText, escapeHtml, isSignedBy, parseFormDecision, postJson, pressEndpoint } from '@svc/sdk/channel';
import { LIMIT } from './channel.ts';

export interface SlackInteractionsOptions {
  readonly svc: Svc;
  /** The "Signing Secret" of the Slack app. */
  readonly signingSecret: string;
  /** The channel that the requests are delivered to. A press in another one decides nothing. */
  readonly channel: string;
}

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

const interactionOf = (body: Uint8Array) => parseFormDecision(body, 'payload') as Interaction;

/** The handler for Slack's "Interactivity Request URL", with web-standard requests: for Hono, Next.js and others. */
export const slackInteractions = ({ svc, signingSecret, channel }: SlackInteractionsOptions) =>
  pressEndpoint({
    svc,
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
