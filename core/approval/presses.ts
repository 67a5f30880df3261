import { limitText } from '../display/limit.ts';
import { roleText } from '../display/role-text.ts';
import { displayText } from '../display/text.ts';
import { errorMessage, isSvcError } from '../errors.ts';
import { readBody } from '../read-body.ts';
import { isOutage } from './backend.ts';
import type { ApprovalRecord, ApprovalStatus } from './request.ts';

/** Services send the whole message with a press. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Of a sentence for the person, in UTF-16 code units. */
const TEXT_LENGTH = 500;

/** A button that a person pressed in the medium. @experimental */
export interface Press {
  readonly button: 'approve' | 'reject';
  readonly requestId: string;
  /** The person's id in the service, stored as who decided: `slack:U123`. */
  readonly actor: string;
  /** The chat in which the button was pressed, if there are `chats`. */
  readonly chat?: string | undefined;
}

/** The effect of a press, to show to the person. @experimental */
export interface PressResult {
  /** Whether the request is decided, and so by this person. False with a vote: the request still waits. */
  readonly decided: boolean;
  /** The decision, or why nothing was decided: at most 500 characters, before you escape the markup of the medium. */
  readonly text: string;
  /** The request as it is now, with its tool and parameters, of which sensitive ones are masked. Undefined for an unknown one. */
  readonly record?: ApprovalRecord;
}

/** How the requests are read that a service sends for pressed buttons, and answered. @experimental */
export interface Presses {
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

/** What a press does. */
export interface PressDecider {
  /** Begins the warning of an error of `read`. */
  readonly name: string;
  decide(press: Press): Promise<{ readonly status: ApprovalStatus }>;
  /** Sensitive parameters are masked. */
  get(requestId: string): Promise<ApprovalRecord>;
}

/** The handler of the requests that a service sends. Nothing is read of the store before a request is verified. */
export function pressHandler(presses: Presses, decider: PressDecider): (request: Request) => Promise<Response> {
  return async (request) => {
    const body = await readBody(request, MAX_BODY_BYTES);
    if (body === 'too large') return new Response(null, { status: 413 });
    if (body === 'too slow') return new Response(null, { status: 408 });
    if (!(await presses.verify(request.headers, body))) return new Response(null, { status: 401 });
    let press: Press | Response | undefined;
    try {
      press = presses.read(body);
    } catch (error) {
      if (isBadBody(error)) return new Response(null, { status: 400 });
      warn(`${decider.name}: read threw on a verified request`, error);
      return new Response(null, { status: 500 });
    }
    if (isResponse(press)) return press;
    if (!press) return new Response(null, { status: 200 });
    const { isDown, ...result } = await resultOf(presses, decider, press);
    return (await presses.show(result, press, body)) ?? new Response(null, { status: isDown ? 503 : 200 });
  };
}

/** What `parseDecision`, `JSON.parse` and `decodeURIComponent` throw. */
const isBadBody = (error: unknown): boolean =>
  isSvcError(error) || error instanceof SyntaxError || error instanceof URIError;

const isResponse = (read: Press | Response | undefined): read is Response => read !== undefined && 'status' in read;

function warn(what: string, error: unknown): void {
  const detail = error instanceof Error ? error.stack : undefined;
  const message = `${what}: ${errorMessage(error)}`;
  process.emitWarning(message, { type: 'SvcWarning', ...(detail !== undefined && { detail }) });
}

async function resultOf(
  { chats }: Presses,
  decider: PressDecider,
  press: Press,
): Promise<PressResult & { readonly isDown?: true }> {
  const { requestId, actor, chat } = press;
  if (chats && (chat === undefined || !chats.includes(chat))) {
    return { decided: false, text: 'The request was not delivered to this chat. Nothing was decided.' };
  }
  try {
    const { status } = await decider.decide(press);
    // Repeating a decision is not an error: somebody else may have made it before.
    const record = await decider.get(requestId);
    if (status === 'waiting') {
      const text = `The vote of ${actor} on ${requestId} was stored. Missing: ${roleText(record.missing ?? [])}.`;
      return { decided: false, text: sentence(text), record };
    }
    const isPart = record.votes?.some(
      (vote) => vote.by === actor && !vote.void && vote.approved === (status === 'approved'),
    );
    const decided = isPart ?? record.decidedBy === actor;
    const text = decided ? `${requestId} is ${status} by ${record.decidedBy}.` : `${requestId} is already ${status}.`;
    return { decided, text: sentence(text), record };
  } catch (error) {
    if (!isSvcError(error)) throw error;
    if (isOutage(error)) {
      const text = `${error.message} Whether ${requestId} is decided is not known: press again.`;
      return { decided: false, text: sentence(text), isDown: true };
    }
    // Already decided, expired, or with sensitive parameters.
    const page = error.code === 'approval_unseen' ? ' Open its page, or use svc approvals show --reveal.' : '';
    const record = await decider.get(requestId).catch(() => undefined);
    const why = error.code === 'decision_refused' || error.code === 'decision_invalid' ? ` ${error.why}` : '';
    return { decided: false, text: sentence(`${error.message}${why}${page}`), ...(record && { record }) };
  }
}

const sentence = (text: string): string => limitText(displayText(text), { maxLength: TEXT_LENGTH }).text;
