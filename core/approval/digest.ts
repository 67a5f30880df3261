import { createHash } from 'node:crypto';
import type { Json } from '../json.ts';
import { canonicalJson } from '../json.ts';
import type { Parameters } from './request.ts';

/** Bytes of the parameters of one request, as JSON. */
export const PARAMETERS_LIMIT = 256 * 1024;

/**
 * What an approval is bound to: this execution's call of this tool, defined so, with exactly these parameters. A human
 * may type it behind an option: it never begins with a hyphen.
 */
export function callDigest(executionId: string, toolDigest: string, parameters: Parameters): string {
  return `c${sha256(canonicalJson({ executionId, parameters, tool: toolDigest }))}`;
}

/** The key under which a caller's own name of a call is kept. */
export function callKey(executionId: string, toolCallId: string): string {
  return sha256(canonicalJson([executionId, toolCallId]));
}

export function tooLarge(parameters: Json): boolean {
  return Buffer.byteLength(canonicalJson(parameters)) > PARAMETERS_LIMIT;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
