import { isPlainObject, jsonDigest } from '../../json.ts';
import { type BoundCall, boundCall, callDigest } from '../../tool/call-digest.ts';
import { originFields } from '../event-chain.ts';
import { hasSensitiveParameters } from '../public-view.ts';
import type { ApprovalEvent } from '../request.ts';
import type { ApprovalRow } from '../schema.ts';
import type { SealPublicKey } from './key.ts';
import { type MerkleStep, merklePath, rootOfPath } from './merkle.ts';
import {
  headerOf,
  isSealedRequest,
  isSealHeader,
  leafOf,
  leavesOf,
  type Seal,
  type SealedRequest,
  type SealHeader,
  signatureProblem,
} from './seal.ts';

/** What was requested, what happened, and that it was sealed. To verify it, the public key is enough. @experimental */
export interface AuditProof {
  readonly proof: 1;
  /** The call; its digest is that of `request`. Absent if it has sensitive parameters. */
  readonly call?: BoundCall;
  /** What the request had from the beginning: its hash is `prev` of the first event. */
  readonly request: { readonly requestId: string; readonly digest: string; readonly [field: string]: unknown };
  /** Those that the seal covers, each with the hash of the one before it. */
  readonly events: readonly ApprovalEvent[];
  /** A leaf of the tree: the hash of the last event is `head`. */
  readonly sealed: SealedRequest;
  /** From the leaf to the root of the tree. */
  readonly path: readonly MerkleStep[];
  readonly seal: SealHeader;
}

/** The proof of a request by a seal that covers it with the leaf `sealed`. */
export function createProof(row: ApprovalRow, seal: Seal, sealed: SealedRequest): AuditProof {
  const { requestId, executionId, agentTag, body } = row;
  const leaves = leavesOf(seal.requests);
  return {
    proof: 1,
    ...(!hasSensitiveParameters(body) && { call: boundCall({ ...body, requestId, executionId, agentTag }) }),
    request: originFields(row),
    events: body.events.slice(0, sealed.events),
    sealed,
    path: merklePath(leaves, leaves.indexOf(leafOf(sealed))),
    seal: headerOf(seal),
  };
}

/** Whether something has the form of a proof. */
export function isProof(value: unknown): value is AuditProof {
  return (
    isPlainObject(value) &&
    value.proof === 1 &&
    isPlainObject(value.request) &&
    Array.isArray(value.events) &&
    value.events.every(isEvent) &&
    isSealedRequest(value.sealed) &&
    Array.isArray(value.path) &&
    value.path.every(isStep) &&
    isSealHeader(value.seal) &&
    (value.call === undefined || (isPlainObject(value.call) && typeof value.call.tool === 'string'))
  );
}

const isText = (value: unknown): boolean => typeof value === 'string';
const isOptionalText = (value: unknown): boolean => value === undefined || isText(value);
const isEvent = (value: unknown): boolean =>
  isPlainObject(value) &&
  isText(value.at) &&
  isText(value.type) &&
  isOptionalText(value.by) &&
  isOptionalText(value.as) &&
  (value.principal === undefined || (isPlainObject(value.principal) && isText(value.principal.verifiedBy)));
const isStep = (value: unknown): boolean =>
  Array.isArray(value) && (value[0] === 'left' || value[0] === 'right') && isText(value[1]);

/** What of a proof does not hold; nothing if it does. */
export function proofProblems(proof: AuditProof, keys: readonly SealPublicKey[]): string[] {
  const { call, request, events, sealed, path, seal } = proof;
  const problems: string[] = [];
  const signature = signatureProblem(seal, keys);
  if (signature !== undefined) problems.push(`Seal ${seal.seal} ${signature}.`);
  if (rootOfPath(leafOf(sealed), path) !== seal.root) problems.push(`Seal ${seal.seal} does not cover the request.`);
  if (sealed.requestId !== request.requestId || sealed.removed) problems.push('What is sealed is another request.');
  if (call && callDigest(call) !== request.digest) problems.push('The call is not that of the request.');
  const linked: readonly { readonly prev?: string }[] = events;
  let head = jsonDigest(request);
  for (const [index, event] of linked.entries()) {
    if (event.prev !== head) problems.push(`Event ${index + 1} does not follow the one before it, or the request.`);
    head = jsonDigest(event);
  }
  if (events.length !== sealed.events || head !== sealed.head)
    problems.push('The events are not those that are sealed.');
  return problems;
}
