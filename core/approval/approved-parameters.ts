import { canonicalJson } from '../json.ts';
import { callDigest, isCurrentDigest } from '../tool/call-digest.ts';
import type { ParameterValidation, ToolParameters } from '../tool/parameters.ts';
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
export function staleReason({
  digest,
  toolDigest,
  damaged,
}: Pick<ApprovalBody, 'digest' | 'toolDigest' | 'damaged'>): string | undefined {
  if (damaged !== undefined) return 'What is stored of the request is damaged.';
  if (isCurrentDigest(digest) && isCurrentDigest(toolDigest)) return undefined;
  return 'The request was stored by another version of @svc/sdk.';
}

/** Valid parameters, and what the handler receives. */
export type ValidParameters = Extract<ParameterValidation, { readonly ok: true }>;

/** The parameters to run an approved call with, or why it cannot run: the tool or the request is not what was approved. */
export async function approvedParameters(
  record: ApprovalRow,
  tool: Tool | undefined,
  digest: string | undefined,
): Promise<ValidParameters | { readonly ok: false; readonly why: string | undefined }> {
  const { body } = record;
  const stale = { ok: false, why: staleReason(body) } as const;
  if (!tool || tool.digest !== body.toolDigest) return stale;
  const requested = requestDigest(record);
  if (requested !== body.digest || (digest !== undefined && digest !== requested)) return stale;
  const isChanged = body.decision?.modifiedParams !== undefined;
  const approved = isChanged ? body.decision?.digest : body.digest;
  const parameters = effectiveParameters(body);
  // Changes that a process without the tool accepted were validated against its JSON Schema only.
  const isAsDecided = isChanged && requestDigest(record, { parameters }) === approved;
  const validated = await tool.validate(parameters);
  if (!validated.ok)
    return isAsDecided ? { ok: false, why: 'The tool does not accept the changes of the reviewer.' } : stale;
  if (requestDigest(record, { parameters: validated.parameters }) === approved) return validated;
  return isAsDecided ? { ok: false, why: 'The tool reads the changes of the reviewer as other parameters.' } : stale;
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
