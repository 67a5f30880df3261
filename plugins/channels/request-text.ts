import type { Decided, Delivery, Notice } from '../../core/approval/channel.ts';
import type { ApprovalRecord } from '../../core/approval/request.ts';
import { displayJson } from '../../core/display/json.ts';
import { type DisplayedText, limitText } from '../../core/display/limit.ts';
import { roleText } from '../../core/display/role-text.ts';
import { displayText } from '../../core/display/text.ts';

/** The texts of a message about a request, safe to show and escaped. @experimental */
export interface RequestText {
  /** Who wants to call what, where, and why, on one line of at most 500 characters, escapes included. */
  readonly title: string;
  /** At most `maxLength` characters. Use a monospaced font. */
  readonly parameters: string;
  /** The id of the request, and when it expires: at most 72 characters before `escape`. */
  readonly footer: string;
  /**
   * The buttons that the message may have. Nobody decides about masked parameters or approves what was left out: link
   * `callbackUrl`, if there is one.
   */
  readonly buttons: readonly ('approve' | 'reject')[];
}

/** Of a line that names people, in UTF-16 code units. */
const LINE_LENGTH = 500;
/** Of the line with the tool and its agent. */
const CALL_LENGTH = 160;

/** How a medium escapes its markup if parameters are in a block of code, such as one of Markdown. @experimental */
export interface MarkupEscape {
  /** Outside of the block. */
  text(text: string): string;
  /** In the block: what would end it. */
  code(text: string): string;
  /** Written before and after parameters, and counted in `maxLength`: `['```\n', '\n```']`. Default: nothing. */
  readonly block?: readonly [before: string, after: string];
}

/** What is shown, and at most how much of it. @experimental */
export interface MessageTextOptions {
  /** The longest text of parameters that the medium accepts, in UTF-16 code units, including the escapes. */
  readonly maxLength: number;
  /** Escapes the markup of the medium. */
  readonly escape?: ((text: string) => string) | MarkupEscape | undefined;
}

/** @experimental */
export interface RequestTextOptions extends MessageTextOptions {
  /** That of `notify`: the title begins with it. */
  readonly notice?: Notice | undefined;
}

/**
 * What a message about a request says. `maxLength` limits its parameters; `escape` escapes the markup of the medium.
 * @experimental
 */
export function requestText(delivery: Delivery, { notice, ...options }: RequestTextOptions): RequestText {
  const { requestId, agentTag, tool, product, env, reason, timeout, masked } = delivery;
  const escaped = escapeOf(options).text;
  const what = `${agentTag} wants to call ${tool} in ${product}, ${env}: ${reason}`;
  const { text, complete } = parametersText(delivery.parameters, options);
  return {
    title: lineText(notice ? `${waitingText(notice)}: ${what}` : what, escaped),
    parameters: text,
    footer: escaped(displayText(`${requestId}, until ${timeout}`)),
    buttons: masked ? [] : complete ? ['approve', 'reject'] : ['reject'],
  };
}

/** `Still waiting for 1 of finance, heads may decide too`. Safe to show, and at most 500 characters. */
export const noticeText = (notice: Notice): string => lineText(waitingText(notice));

const lineText = (text: string, escaped: (text: string) => string = String, maxLength = LINE_LENGTH): string =>
  limitText(displayText(text), { maxLength, escape: escaped }).text;

function waitingText({ to, missing }: Notice): string {
  const waiting = `Still waiting${missing.length > 0 ? ` for ${roleText(missing)}` : ''}`;
  const added = to.length > 0 ? `, ${to.map(({ role }) => role).join(', ')} may decide too` : '';
  return `${waiting}${added}`;
}

/**
 * What a message about a decision says: the decision, who made it and why, whose tool it is and where, and the parameters with
 * which it was approved. At most 690 characters without these, escapes included.
 * @experimental
 */
export function decisionText(record: ApprovalRecord | Decided, options: MessageTextOptions): string {
  const { requestId, agentTag, status, cause, decidedBy, decisionReason, tool, parameters, modifiedParams } = record;
  const by = decidedBy ?? cause;
  const escaped = escapeOf(options).text;
  const decision = `${requestId} is ${status}${by === undefined ? '' : ` by ${by}`}`;
  const why = decisionReason === undefined ? '' : `: ${decisionReason}`;
  const changed = modifiedParams === undefined ? '' : `, changed: ${Object.keys(modifiedParams).join(', ')}`;
  const where = 'product' in record ? ` in ${record.product}, ${record.env}` : '';
  const isUnattended = record.unattendedSince !== undefined && status === 'approved';
  return [
    lineText(`${decision}${why}`, escaped),
    lineText(`${tool} of ${agentTag}${where}${changed}`, escaped, CALL_LENGTH),
    ...(isUnattended ? ['No process waits for it now'] : []),
    parametersText({ ...parameters, ...modifiedParams }, options).text,
  ].join('\n');
}

function escapeOf({ escape: given = String }: MessageTextOptions): MarkupEscape {
  return typeof given === 'function' ? { text: given, code: given } : given;
}

function parametersText(parameters: object, options: MessageTextOptions): DisplayedText {
  const { code, block: [before, after] = ['', ''] } = escapeOf(options);
  const maxLength = Math.max(0, options.maxLength - before.length - after.length);
  const { text, complete } = displayJson(parameters, { maxLength, escape: code });
  return { text: `${before}${text}${after}`, complete };
}

/** For media that show HTML, and Slack: `&`, `<` and `>` as text. @experimental */
export const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
