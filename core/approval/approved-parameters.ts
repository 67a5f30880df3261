import { canonicalJson } from '../json.ts';
import { callDigest, isCurrentDigest } from '../tool/call-digest.ts';
import type { ToolParameters } from '../tool/parameters.ts';
import type { Tool } from '../tool/tool.ts';
import type { ApprovalBody, ApprovalRow } from './schema.ts';

/** The parameters to run with, not yet validated: the reviewer's changes merged into an object without prototype. */
export function effectiveParameters({
  parameters,
  decision,
}: Pick<ApprovalBody, 'parameters' | 'decision'>): ToolParameters {
  return Object.assign(Object.create(null), parameters, decision?.modifiedParams) as ToolParameters;
}

/** The digest of a request as it is stored now, or with another tool or other parameters. */
export function requestDigest(
  { requestId, executionId, agentTag, body }: Pick<ApprovalRow, 'requestId' | 'executionId' | 'agentTag' | 'body'>,
  changes: Partial<Pick<ApprovalBody, 'tool' | 'toolDigest' | 'parameters'>> = {},
): string {
  return callDigest({ ...body, ...changes, requestId, executionId, agentTag });
}

/** Why no approval of the request is valid, where that is not a change of the tool or of the request. */
export function staleReason({ digest, toolDigest }: Pick<ApprovalBody, 'digest' | 'toolDigest'>): string | undefined {
  if (isCurrentDigest(digest) && isCurrentDigest(toolDigest)) return undefined;
  return 'The request was stored by another version of @svc/sdk.';
}

/** The parameters to run an approved call with; undefined if the tool or the request is not what was approved. */
export function approvedParameters(
  record: ApprovalRow,
  tool: Tool | undefined,
  digest: string | undefined,
): ToolParameters | undefined {
  const { body } = record;
  if (!tool || tool.digest !== body.toolDigest) return undefined;
  const requested = requestDigest(record);
  if (requested !== body.digest || (digest !== undefined && digest !== requested)) return undefined;
  const validated = tool.validate(effectiveParameters(body));
  if (!validated.ok) return undefined;
  const { parameters } = validated;
  const approved = body.decision?.modifiedParams === undefined ? body.digest : body.decision.digest;
  return requestDigest(record, { parameters }) === approved ? parameters : undefined;
}

/** The call with the parameters that the tool runs with. */
export function callAsRun(body: ApprovalBody): Pick<ApprovalBody, 'tool' | 'parameters'> {
  return { tool: body.tool, parameters: { ...effectiveParameters(body) } };
}

/** Names of the parameters to which the reviewer gave another value. */
export function changedParameters({ parameters, decision }: ApprovalBody): string[] {
  const modified = decision?.modifiedParams ?? {};
  const isUnchanged = (name: string) =>
    Object.hasOwn(parameters, name) && canonicalJson(parameters[name]) === canonicalJson(modified[name]);
  return Object.keys(modified).filter((name) => !isUnchanged(name));
}
