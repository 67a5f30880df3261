import { type DeliveryAttempt, deliveriesOf } from '../../core/approval/audit.ts';
import { hasSensitiveParameters, toApprovalRecord } from '../../core/approval/public-view.ts';
import type { ApprovalRecord } from '../../core/approval/request.ts';
import { type RevealOptions, recordReveal } from '../../core/approval/reveal.ts';
import type { ApprovalService, RequestRow } from '../../core/approval/service.ts';
import { SvcError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import { shortDigest } from '../../core/tool/call-digest.ts';

/** @experimental */
export interface ApprovalDetails extends ApprovalRecord {
  /** Proof that the whole request was shown; pass it with the decision. Absent if a parameter is masked. */
  readonly reviewToken?: string;
  /** The beginning of the request's digest, as prompts and pages show it: it names what was shown, and proves nothing. */
  readonly digest: string;
  /** The beginning of what the model wrote before the call, if the program said. A model's text: show it as such. */
  readonly modelText?: string;
  /** The tool's definition at the time of the call. */
  readonly definition?: { readonly description: string; readonly schema: { readonly [keyword: string]: Json } };
  /** Every delivery attempt, oldest first. */
  readonly deliveries: readonly DeliveryAttempt[];
}

type DetailsOptions = { readonly reveal?: boolean } & RevealOptions;

/** A request as `Approvals.get` returns it. Throws `approval_unknown` and, with `reveal`, `token_invalid`. */
export async function approvalDetails(
  service: ApprovalService,
  requestId: string,
  options?: DetailsOptions,
): Promise<ApprovalDetails> {
  const found = await service.getExpiringIfDue(requestId);
  if (!found) throw unknownRequestError(requestId);
  return detailsOf(service, found, options);
}

/** The same of a request that was read. */
export async function detailsOf(
  service: ApprovalService,
  found: RequestRow,
  { reveal = false, ...reader }: DetailsOptions = {},
): Promise<ApprovalDetails> {
  const row = reveal ? await recordReveal(service, found, reader) : found;
  const { requestId, body } = row.record;
  const definition = await service.getToolDefinition(body.toolDigest);
  const deliveries: DeliveryAttempt[] = [];
  for await (const delivery of deliveriesOf(service, requestId)) deliveries.push(delivery);
  return {
    ...toApprovalRecord(row.record, reveal, await service.presence.unattendedSince(row.record)),
    ...(body.modelText !== undefined && { modelText: body.modelText }),
    ...(definition && { definition }),
    deliveries,
    digest: shortDigest(body.digest),
    ...((reveal || !hasSensitiveParameters(body)) && { reviewToken: body.digest }),
  };
}

export function unknownRequestError(requestId: string): SvcError {
  return new SvcError('approval_unknown', 'No request has this id.', {
    next: ['svc approvals list    lists the waiting requests'],
    details: { requestId },
  });
}
