import { isSvcError, type Svc } from '@svc/sdk';
import { isFromSlack } from './signature.ts';

export interface SlackAnswersOptions {
  readonly svc: Svc;
  /** "Signing Secret" of the Slack app. */
  readonly signingSecret: string;
}

interface Interaction {
  readonly user: { readonly id: string; readonly username?: string };
  readonly actions: readonly { readonly action_id: string; readonly value?: string }[];
  readonly response_url: string;
}

const SIGNALS = { svc_approve: 'approve', svc_reject: 'reject' } as const;
/** Slack waits three seconds for the answer. */
const PATIENCE_MS = 2_000;

/** What Slack's "Interactivity Request URL" leads to, as a web-standard handler: for Hono, Next, Express, Node. */
export function slackAnswers({ svc, signingSecret }: SlackAnswersOptions): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = await request.text();
    if (!isFromSlack(request.headers, body, signingSecret)) return new Response('not from Slack', { status: 401 });
    const { user, actions, response_url } = JSON.parse(new URLSearchParams(body).get('payload') ?? '{}') as Interaction;
    const pressed = actions.find((action): action is typeof action & { action_id: keyof typeof SIGNALS } =>
      Object.hasOwn(SIGNALS, action.action_id),
    );
    if (!pressed) return new Response(null, { status: 200 });
    const { requestId, executionId } = JSON.parse(pressed.value ?? '{}') as { requestId: string; executionId: string };
    try {
      const signal = SIGNALS[pressed.action_id];
      const { status } = await svc.agents.signal(
        { executionId, signal, payload: { requestId } },
        { actor: `slack:${user.id}` },
      );
      await say(response_url, { replace_original: true, text: `${requestId} is ${status} by <@${user.id}>.` });
    } catch (error) {
      if (!isSvcError(error)) throw error;
      // Another decision stands, it is too late, or it has to be seen elsewhere: the one who pressed learns which.
      await say(response_url, { replace_original: false, response_type: 'ephemeral', text: error.message });
    }
    return new Response(null, { status: 200 });
  };
}

/** The decision stands, whether Slack hears of it or not. */
async function say(url: string, message: object): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(PATIENCE_MS);
  await fetch(url, { method: 'POST', headers, body: JSON.stringify(message), signal }).catch(() => undefined);
}
