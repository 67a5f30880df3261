import { parseDecision } from '../../core/approval/parse-decision.ts';
import type { ApprovalRecord, ApprovalStatus } from '../../core/approval/request.ts';
import { displayText } from '../../core/display/text.ts';
import { errorMessage, isSvcError } from '../../core/errors.ts';
import { readBody } from '../../core/read-body.ts';

/** Services send the whole message with a press. */
const MAX_BODY_BYTES = 1024 * 1024;

/** The part of `Svc` that an endpoint needs. */
export interface DecidingClient {
  readonly agents: {
    signal(
      signal: { readonly signal: 'approve' | 'reject'; readonly payload: { readonly requestId: string } },
      options: { readonly actor: string },
    ): Promise<{ readonly status: ApprovalStatus }>;
  };
  /** `get` without options: sensitive parameters are masked. */
  readonly approvals: { get(requestId: string): Promise<ApprovalRecord> };
}

/** A button that a person pressed in the medium. @experimental */
export interface Press {
  readonly button: 'approve' | 'reject';
  readonly requestId: string;
  /** The person's id in the service, stored as who decided: `slack:U123`. */
  readonly actor: string;
  /** The chat in which the button was pressed, if the endpoint has `chats`. */
  readonly chat?: string | undefined;
}

/** The effect of a press, to show to the person. @experimental */
export interface PressResult {
  /** Whether the request now has this person's decision. False: nothing changed. */
  readonly decided: boolean;
  /** A sentence: the decision, or why nothing was decided. Escape the markup of the medium. */
  readonly text: string;
  /** The request as it is now, with its tool and parameters, of which sensitive ones are masked. Undefined for an unknown one. */
  readonly record?: ApprovalRecord;
}

/** @experimental */
export interface PressEndpoint {
  readonly svc: DecidingClient;
  /** Whether the service sent this body, recently: see `isSignedBy`. */
  verify(headers: Headers, body: Uint8Array): boolean | Promise<boolean>;
  /**
   * The press in a body that is verified, or the response to anything else, such as a ping. Undefined: an empty 200. An
   * error of `parseDecision`, `JSON.parse` or another `SvcError` is answered with 400; any other with 500 and a warning.
   */
  read(body: Uint8Array): Press | Response | undefined;
  /** The only chats in which a press decides. Omit it if messages cannot be forwarded to others. */
  readonly chats?: readonly string[];
  /** Shows the result to the person. Returns the response, if the service shows that; by default it is an empty 200. */
  // biome-ignore lint/suspicious/noConfusingVoidType: a function that only sends has no return.
  show(result: PressResult, press: Press, body: Uint8Array): Promise<Response | undefined | void> | Response;
}

/**
 * The handler of the requests that a service sends for pressed buttons, with web-standard requests. It answers 401 to a
 * request that is not verified, 400 to one that `read` rejects, 408 to one whose body takes longer than 10 seconds, and 413
 * to one of more than 1 MiB. The first decision is final: a later press shows it. An error of `read` that is not about the
 * body is answered with 500 and emitted as an `SvcWarning`; one of `verify` or `show` is thrown. @experimental
 */
export function pressEndpoint(endpoint: PressEndpoint): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = await readBody(request, MAX_BODY_BYTES);
    if (body === 'too large') return new Response(null, { status: 413 });
    if (body === 'too slow') return new Response(null, { status: 408 });
    if (!(await endpoint.verify(request.headers, body))) return new Response(null, { status: 401 });
    let press: Press | Response | undefined;
    try {
      press = endpoint.read(body);
    } catch (error) {
      if (isBadBody(error)) return new Response(null, { status: 400 });
      const detail = error instanceof Error ? error.stack : undefined;
      const message = `pressEndpoint: read threw on a verified request: ${errorMessage(error)}`;
      process.emitWarning(message, { type: 'SvcWarning', ...(detail !== undefined && { detail }) });
      return new Response(null, { status: 500 });
    }
    if (isResponse(press)) return press;
    const shown = press && (await endpoint.show(await resultOf(endpoint, press), press, body));
    return shown ?? new Response(null, { status: 200 });
  };
}

/** What `parseDecision`, `JSON.parse` and `decodeURIComponent` throw. */
const isBadBody = (error: unknown): boolean =>
  isSvcError(error) || error instanceof SyntaxError || error instanceof URIError;

const isResponse = (read: Press | Response | undefined): read is Response => read !== undefined && 'status' in read;

async function resultOf({ svc, chats }: PressEndpoint, press: Press): Promise<PressResult> {
  const { button, requestId, actor, chat } = press;
  if (chats && (chat === undefined || !chats.includes(chat))) {
    return { decided: false, text: 'The request was not delivered to this chat. Nothing was decided.' };
  }
  try {
    const { status } = await svc.agents.signal({ signal: button, payload: { requestId } }, { actor });
    // Repeating a decision is not an error: somebody else may have made it before.
    const record = await svc.approvals.get(requestId);
    const decided = record.decidedBy === actor;
    const text = decided ? `${requestId} is ${status} by ${actor}.` : `${requestId} is already ${status}.`;
    return { decided, text: displayText(text), record };
  } catch (error) {
    if (!isSvcError(error)) throw error;
    // Already decided, expired, or with sensitive parameters.
    const page = error.code === 'approval_unseen' ? ' Open its page, or use svc approvals show --reveal.' : '';
    const record = await svc.approvals.get(requestId).catch(() => undefined);
    return { decided: false, text: displayText(`${error.message}${page}`), ...(record && { record }) };
  }
}

/**
 * The JSON in a form (`application/x-www-form-urlencoded`) whose only field is `name`, as Slack sends it. Throws what
 * `parseDecision` throws, and for a body that is anything else. @experimental
 */
export function parseFormDecision(body: Uint8Array, name: string): unknown {
  const text = Buffer.from(body).toString('latin1');
  const value = text.startsWith(`${name}=`) && !text.includes('&') ? text.slice(name.length + 1) : '';
  // Throws for bytes that are not UTF-8.
  return parseDecision(decodeURIComponent(value.replaceAll('+', ' ')));
}
