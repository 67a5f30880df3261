import { createHash } from 'node:crypto';
import { canonicalJson, type Json } from '../json.ts';
import type { ToolParameters } from './parameters.ts';

/** The size limit of a call's parameters, as canonical JSON. */
export const MAX_PARAMETERS_BYTES = 256 * 1024;

/**
 * The digest that binds an approval to one execution, one definition of a tool and the exact parameters. The prefix
 * keeps it from starting with a hyphen, which a command line would read as an option.
 */
export function callDigest(executionId: string, toolDigest: string, parameters: ToolParameters): string {
  return `c${sha256(canonicalJson({ executionId, parameters, tool: toolDigest }))}`;
}

/** The key of the row that maps a caller's `toolCallId` to its request. */
export function callKey(executionId: string, toolCallId: string): string {
  return sha256(canonicalJson([executionId, toolCallId]));
}

export function isOversized(parameters: Json): boolean {
  return Buffer.byteLength(canonicalJson(parameters)) > MAX_PARAMETERS_BYTES;
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
