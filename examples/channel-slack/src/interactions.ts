import { isSvcError, parseDecision, type Svc } from '@svc/sdk';
import { isFromSlack } from './signature.ts';

export interface SlackInteractionsOptions {
  readonly svc: Svc;
  /** The "Signing Secret" of the Slack app. */
  readonly signingSecret: string;
}

interface Interaction {
  readonly user: { readonly id: string; readonly username?: string };
  readonly actions: readonly { readonly action_id: string; readonly value?: string }[];
  readonly response_url: string;
}

const SIGNALS = { svc_approve: 'approve', svc_reject: 'reject' } as const;
/** Slack expects a response within three seconds. */
const RESPONSE_TIMEOUT_MS = 2_000;

/** The handler for Slack's "Interactivity Request URL", with web-standard requests: for Hono, Next.js and others. */
export function slackInteractions({
  svc,
  signingSecret,
}: SlackInteractionsOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = Buffer.from(await request.arrayBuffer());
    if (!isFromSlack(request.headers, body, signingSecret)) return new Response('not from Slack', { status: 401 });
    const interaction = interactionOf(body);
    if (!interaction) return new Response('not a decision', { status: 400 });
    const { user, actions, response_url } = interaction;
    const pressed = actions.find((action): action is typeof action & { action_id: keyof typeof SIGNALS } =>
      Object.hasOwn(SIGNALS, action.action_id),
    );
    if (!pressed) return new Response(null, { status: 200 });
    const { value: requestId = '' } = pressed;
    const actor = `slack:${user.id}`;
    try {
      const signal = SIGNALS[pressed.action_id];
      const { status } = await svc.agents.signal({ signal, payload: { requestId } }, { actor });
      // Repeating a decision is not an error: somebody else may have made it before.
      const { decidedBy } = await svc.approvals.get(requestId);
      const result = decidedBy === actor ? `${status} by <@${user.id}>` : `already ${status}`;
      await respond(response_url, { replace_original: true, text: `${requestId} is ${result}.` });
    } catch (error) {
      if (!isSvcError(error)) throw error;
      // Already decided, expired, or sensitive parameters: only the person who pressed the button sees the message.
      await respond(response_url, { replace_original: false, response_type: 'ephemeral', text: error.message });
    }
    return new Response(null, { status: 200 });
  };
}

/** Undefined if the body is not what Slack documents, or if parsing it would change it. */
function interactionOf(body: Buffer): Interaction | undefined {
  try {
    const payload = decodeURIComponent(
      /^payload=([^&]*)$/.exec(body.toString('latin1'))?.[1]?.replaceAll('+', ' ') ?? '',
    );
    return parseDecision(payload) as Interaction;
  } catch {
    return undefined;
  }
}

/** The decision is already stored, so a failure to post the message is ignored. */
async function respond(url: string, message: object): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(RESPONSE_TIMEOUT_MS);
  await fetch(url, { method: 'POST', headers, body: JSON.stringify(message), signal }).catch(() => undefined);
}
