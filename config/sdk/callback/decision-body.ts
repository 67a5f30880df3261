import type { Signal } from '../../../core/approval/decide.ts';
import { parseDecision } from '../../../core/approval/parse-decision.ts';
import { decodeUtf8 } from '../../../core/json.ts';
import { readBody } from '../../../core/read-body.ts';
import type { ToolParameters } from '../../../core/tool/parameters.ts';
import { problemText, type Shape, shapeProblems } from '../../../core/validate-shape.ts';
import { invalidDecision, TOO_LARGE, TOO_SLOW } from './http-errors.ts';
import { MAX_BODY_BYTES } from './limits.ts';

export interface Decision {
  readonly approved: boolean;
  readonly reason?: string | null;
  readonly modifiedParams?: ToolParameters | null;
  readonly override?: boolean;
}

/** A decision of a person who may have read the whole request. */
export interface ReviewedDecision extends Decision {
  readonly reviewToken?: string;
}

const PROPERTIES = {
  approved: 'boolean',
  reason: { nullable: 'string' },
  modifiedParams: { nullable: { map: 'json' } },
  override: 'boolean',
} as const satisfies Readonly<Record<string, Shape>>;
const DECISION: Shape = { properties: PROPERTIES, required: ['approved'] };
const REVIEWED_DECISION: Shape = { properties: { ...PROPERTIES, reviewToken: 'string' }, required: ['approved'] };

/** The body of a decision. Throws an `HttpError` if it is too large or too slow. */
export async function readDecisionBody(request: Request): Promise<Uint8Array> {
  const body = await readBody(request, MAX_BODY_BYTES);
  if (body === 'too large') throw TOO_LARGE;
  if (body === 'too slow') throw TOO_SLOW;
  return body;
}

/** Browsers send JSON to another origin only if that allows it. Throws an `HttpError`. */
export function assertJson({ headers }: Request): void {
  if (/^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i.test(headers.get('content-type') ?? '')) return;
  throw invalidDecision('The content type is not application/json.');
}

/** The body is described in docs/reference/approvals.md. */
export const jsonDecision = (request: Request, body: Uint8Array): Decision =>
  decisionOf<Decision>(request, body, DECISION);

export const reviewedDecision = (request: Request, body: Uint8Array): ReviewedDecision =>
  decisionOf<ReviewedDecision>(request, body, REVIEWED_DECISION);

function decisionOf<T extends Decision>(request: Request, body: Uint8Array, shape: Shape): T {
  assertJson(request);
  const value = parseDecision(body);
  const problems = shapeProblems(value, shape);
  if (problems.length > 0) throw invalidDecision(problems.map(problemText).join(' '));
  return value as T;
}

/** Throws an `HttpError` for anything but `{}`. */
export function assertEmpty(body: Uint8Array): void {
  if (shapeProblems(parseDecision(body), { properties: {} }).length > 0) throw invalidDecision('The body is not {}.');
}

/** The fields of a form. Throws if one occurs twice, or if a byte is not UTF-8: `URLSearchParams` would replace it. */
export function parseForm(body: Uint8Array): URLSearchParams {
  const text = decodeUtf8(body);
  try {
    decodeURIComponent(text ?? '%');
  } catch {
    throw invalidDecision('The form is not UTF-8.');
  }
  const fields = new URLSearchParams(text);
  const names = [...fields.keys()];
  if (new Set(names).size < names.length) throw invalidDecision('A field occurs twice in the form.');
  return fields;
}

export function parseModifiedParams(text: string): ToolParameters {
  const value = parseDecision(text);
  if (shapeProblems(value, { map: 'json' }).length > 0)
    throw invalidDecision('The parameters to change are not a JSON object.');
  return value as ToolParameters;
}

export function signalFor(requestId: string, { approved, reason, modifiedParams }: Decision): Signal {
  return {
    signal: approved ? 'approve' : 'reject',
    payload: { requestId, reason, modifiedParams },
  };
}
