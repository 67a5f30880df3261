import { SvcError } from '../../errors.ts';
import { chainProblems, headOf } from '../event-chain.ts';
import type { ApprovalRow } from '../schema.ts';
import type { ApprovalService } from '../service.ts';
import { ANNOUNCED_MS } from './announce-late.ts';
import type { SealPublicKey } from './key.ts';
import { type AuditProof, createProof } from './proof.ts';
import { isSealed, StoredSeals } from './stored-seals.ts';

/** The proof of a request by the newest seal that covers it; undefined without one. Throws `audit_broken`. */
export async function proveRequest(
  { backend }: ApprovalService,
  row: ApprovalRow,
  keys: readonly SealPublicKey[],
): Promise<AuditProof | undefined> {
  if (!(await isSealed(backend))) return undefined;
  const created = Date.parse(row.body.timestamp) - ANNOUNCED_MS;
  for await (const seal of new StoredSeals(backend, keys).backwards()) {
    if (Date.parse(seal.at) < created) return undefined;
    const sealed = seal.requests.findLast(({ requestId, removed }) => requestId === row.requestId && !removed);
    if (!sealed) continue;
    const { requestId } = row;
    const isIntact = sealed.events <= row.body.events.length && headOf(row, sealed.events) === sealed.head;
    if (row.body.events[0] && row.body.events[0].prev === undefined) {
      throw new SvcError('not_supported', 'There is no proof of this request.', {
        why: 'It was stored by a version of @svc/sdk that did not link events.',
        details: { requestId },
      });
    }
    if (isIntact && chainProblems(row).length === 0) return createProof(row, seal, sealed);
    throw new SvcError('audit_broken', 'The request is not what was sealed.', {
      why: `Seal ${seal.seal} covers ${sealed.events} events, and what is stored of it was changed.`,
      next: ['svc approvals verify    names what was changed'],
      details: { requestId },
    });
  }
  return undefined;
}
