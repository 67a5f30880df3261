import { canonicalJson } from '../json.ts';
import { callDigest } from '../tool/call-digest.ts';
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

/** The parameters to run an approved call with; undefined if the tool or the request is not what was approved. */
export function approvedParameters(
  { executionId, body }: ApprovalRow,
  tool: Tool | undefined,
  digest: string | undefined,
): ToolParameters | undefined {
  if (!tool || tool.digest !== body.toolDigest) return undefined;
  const requested = callDigest(executionId, tool.digest, body.parameters);
  if (requested !== body.digest || (digest !== undefined && digest !== requested)) return undefined;
  const validated = tool.validate(effectiveParameters(body));
  if (!validated.ok) return undefined;
  const { parameters } = validated;
  if (body.decision?.modifiedParams === undefined) return parameters;
  return callDigest(executionId, tool.digest, parameters) === body.decision.digest ? parameters : undefined;
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
