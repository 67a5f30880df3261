import { canonicalJson, isPlainObject, type Json, jsonDigest } from '../json.ts';
import type { ToolParameters } from './parameters.ts';
import { MAX_DEPTH } from './safe-json.ts';

/** The size limit of a call's parameters, as canonical JSON. */
export const MAX_PARAMETERS_BYTES = 256 * 1024;

/** What an approval is bound to: the call, and what else reviewers read about it. Callback tokens bind the deadline. @experimental */
export interface BoundCall {
  readonly requestId: string;
  readonly executionId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly toolDigest: string;
  readonly toolCallId?: string | undefined;
  readonly parameters: ToolParameters;
  /** Names of the parameters that are masked. */
  readonly sensitive?: readonly string[] | undefined;
  /** Random, with sensitive parameters: without it, a digest would let readers try values until one fits. */
  readonly salt?: string | undefined;
  readonly reason: string;
  /** What the model wrote before the call; a digest without it is that of a call without it. */
  readonly modelText?: string | undefined;
}

/**
 * Versions of what the digests below cover. A digest of another version equals none of this one. The letter keeps them
 * from starting with a hyphen, which a command line would read as an option.
 */
const CALL_VERSION = 'c2.';
const TOOL_VERSION = 't2.';

/** The digest that binds an approval to one call. */
export function callDigest(call: BoundCall): string {
  return `${CALL_VERSION}${jsonDigest(boundCall(call))}`;
}

/** What the digest covers, and nothing else. */
export function boundCall(call: BoundCall): BoundCall {
  return {
    requestId: call.requestId,
    executionId: call.executionId,
    agentTag: call.agentTag,
    tool: call.tool,
    toolDigest: call.toolDigest,
    toolCallId: call.toolCallId,
    parameters: call.parameters,
    sensitive: call.sensitive,
    salt: call.salt,
    reason: call.reason,
    modelText: call.modelText,
  };
}

const SHORT_LENGTH = 8;

/** The beginning of a digest, with which a person compares what two pages show. */
export function shortDigest(digest: string): string {
  return digest.slice(0, CALL_VERSION.length + SHORT_LENGTH);
}

/** The parts of a tool that are stored with its requests. `requiresConfirmation` decides who is asked, not what runs. */
export interface ToolIdentity {
  readonly tag: string;
  readonly description: string;
  readonly idempotent: boolean;
  readonly schema: { readonly [keyword: string]: Json };
  readonly sensitive: readonly string[];
  /** True for a Standard Schema: it fills in the defaults of its JSON Schema. Absent for any other. */
  readonly addsDefaults?: boolean | undefined;
}

/** The digest of a tool's definition. The order of its parameters does not count. */
export function toolDigest({ tag, description, idempotent, schema, sensitive, addsDefaults }: ToolIdentity): string {
  const required = sorted(schema?.required);
  const bound = { tag, description, idempotent, schema: { ...schema, required }, addsDefaults };
  return `${TOOL_VERSION}${jsonDigest({ ...bound, sensitive: sorted(sensitive) })}`;
}

/** Whether a digest of a call or a tool covers what this version of the SDK covers. */
export function isCurrentDigest(digest: string): boolean {
  return digest.startsWith(CALL_VERSION) || digest.startsWith(TOOL_VERSION);
}

/** Leaves any other value as it is: what a store returns may have been changed there. */
function sorted(names: unknown): unknown {
  return Array.isArray(names) ? [...names].sort() : names;
}

/** The key of the row that maps a caller's `toolCallId` to its request. */
export function callKey(executionId: string, toolCallId: string): string {
  return jsonDigest([executionId, toolCallId]);
}

/** The key of the row that marks the tools of a tag as gated: a call has two names, so the keys differ. */
export function gatedToolKey(tag: string): string {
  return jsonDigest([tag]);
}

/**
 * Whether parameters, not yet validated, are larger than the limit even without their punctuation. Looks at no more
 * than the limit, so that a call of any size is rejected at once. `isOversized` measures what passes this.
 */
export function isClearlyOversized(parameters: unknown): boolean {
  let left = MAX_PARAMETERS_BYTES;
  const fits = (value: unknown, depth: number): boolean => {
    left -= typeof value === 'string' ? value.length : 1;
    // Validation rejects what is nested too deeply, such as a circular object, and what is not JSON.
    if (left < 0 || depth > MAX_DEPTH) return left >= 0;
    if (Array.isArray(value)) return value.length <= left && value.every((item) => fits(item, depth + 1));
    if (!isPlainObject(value)) return true;
    for (const key in value) {
      left -= key.length;
      if (!fits(value[key], depth + 1)) return false;
    }
    return true;
  };
  return !fits(parameters, 0);
}

export function isOversized(parameters: Json): boolean {
  // A UTF-16 unit has at most three bytes in UTF-8.
  if (JSON.stringify(parameters).length * 3 <= MAX_PARAMETERS_BYTES) return false;
  return Buffer.byteLength(canonicalJson(parameters)) > MAX_PARAMETERS_BYTES;
}
