import { SvcError } from '../../errors.ts';
import { chainProblems, headOf } from '../event-chain.ts';
import type { ApprovalRow } from '../schema.ts';
import type { ApprovalService } from '../service.ts';
import { ANNOUNCED_MS } from './announce-late.ts';
import { type AuditProof, createProof } from './proof.ts';
import { storedSealsBackwards } from './seal-log.ts';

/** The proof of a request by the newest seal that covers it; undefined without one. Throws `audit_broken`. */
export async function proveRequest({ backend }: ApprovalService, row: ApprovalRow): Promise<AuditProof | undefined> {
  const created = Date.parse(row.body.timestamp) - ANNOUNCED_MS;
  for await (const seal of storedSealsBackwards(backend)) {
    if (Date.parse(seal.at) < created) return undefined;
    const sealed = seal.requests.findLast(({ requestId, removed }) => requestId === row.requestId && !removed);
    if (!sealed) continue;
    const { requestId } = row;
    const isSealed = sealed.events <= row.body.events.length && headOf(row, sealed.events) === sealed.head;
    if (isSealed && chainProblems(row).length === 0) return createProof(row, seal, sealed);
    throw new SvcError('audit_broken', 'The request is not what was sealed.', {
      why: `Seal ${seal.seal} covers ${sealed.events} events, and what is stored of it was changed.`,
      next: ['svc approvals verify    names what was changed'],
      details: { requestId },
    });
  }
  return undefined;
}
