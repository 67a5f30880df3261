import { createHmac } from 'node:crypto';
import { SvcError } from '../errors.ts';
import { canonicalJson } from '../json.ts';
import type { Principal } from './principal.ts';
import type { ApprovalEvent } from './request.ts';
import { personKey } from './rule.ts';
import type { ApprovalRow } from './schema.ts';

/*
 * The event of a decision has the digests of its idempotency key, and of what was decided with it by whom. So a key is
 * stored in the same write as what it did, is known to every process, and lasts as long as the request.
 */

/** Printable ASCII: what an HTTP header can have without an encoding. */
export const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** A decision as its sender wrote it. */
interface SentDecision {
  readonly approved: boolean;
  readonly reason: string | undefined;
  readonly modifiedParams: object | undefined;
  readonly override: boolean | undefined;
  readonly reviewToken: string | undefined;
}

/** What the event of a decision has of its key. Both are secret to who does not know the key and the salt. */
export function idempotencyOf(
  { requestId, body: { salt = '' } }: ApprovalRow,
  key: string,
  { by, principal }: { readonly by: string; readonly principal: Principal },
  { approved, reason, modifiedParams, override = false, reviewToken }: SentDecision,
): NonNullable<ApprovalEvent['idempotency']> {
  const digest = (...parts: readonly string[]) =>
    createHmac('sha256', `${salt} ${key}`)
      .update([requestId, ...parts].join('\n'))
      .digest('base64url');
  const sent = { approved, reason, modifiedParams, override, reviewToken };
  return {
    key: digest('key'),
    decision: digest('decision', personKey(principal) || by, canonicalJson(JSON.parse(JSON.stringify(sent)))),
  };
}

/** Whether the decision was made with its key before. Throws `idempotency_key_reused` if the key was used for another one. */
export function isReplay(row: ApprovalRow, { key, decision }: NonNullable<ApprovalEvent['idempotency']>): boolean {
  const found = row.body.events.find(({ idempotency }) => idempotency?.key === key)?.idempotency;
  if (!found) return false;
  if (found.decision === decision) return true;
  throw new SvcError('idempotency_key_reused', 'The idempotency key was used for another decision on the request.', {
    why: 'A key belongs to one person and to one decision, with its reason and its changes.',
    state: 'Nothing was decided.',
    next: ['Send another decision with a new key.'],
  });
}
