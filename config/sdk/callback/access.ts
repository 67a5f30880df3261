import { createHash } from 'node:crypto';
import { isPersonToken } from '../../../core/approval/person-tokens.ts';
import type { Principal } from '../../../core/approval/principal.ts';
import { isListed } from '../../../core/approval/rule.ts';
import type { ApprovalService } from '../../../core/approval/service.ts';
import { isSvcError } from '../../../core/errors.ts';
import { throttle } from './http-errors.ts';
import { RateLimit } from './limits.ts';
import type { HttpError } from './response.ts';

/** Per minute: for each person, and for all tokens that are not valid. */
const MAX_PER_PERSON = 600;
const MAX_INVALID = 6_000;
/** Hashes of tokens that were valid, so that others cannot keep out those who have one. */
const MAX_KNOWN = 10_000;

const REFUSED: HttpError = {
  status: 403,
  error: 'access_refused',
  message: 'This person may not list and decide requests here.',
};

/** The owner of a token, and the end of one that has an own. */
interface Owner {
  readonly principal: Principal;
  readonly expiresAt?: Date;
}

/** The owner of a token, if they are let in. Throws `token_invalid` and an `HttpError`. */
export type Access = (token: string) => Promise<Owner>;

/** Lets in the people of the role whose members these are. */
export function accessOf(approvals: ApprovalService, members: readonly string[]): Access {
  const perPerson = new RateLimit(MAX_PER_PERSON);
  const invalid = new RateLimit(MAX_INVALID);
  const known = new Set<string>();
  return async (token) => {
    const hash = createHash('sha256').update(token).digest('base64url');
    if (!known.has(hash)) throttle(invalid, '', 'only look');
    try {
      const found = isPersonToken(token)
        ? await approvals.personTokens.find(token)
        : { principal: await approvals.verifyToken(token) };
      if (known.size >= MAX_KNOWN) known.clear();
      known.add(hash);
      throttle(perPerson, found.principal.id);
      if (!isListed(members, found.principal)) throw REFUSED;
      return found;
    } catch (error) {
      if (isSvcError(error) && error.code === 'token_invalid') {
        known.delete(hash);
        throttle(invalid, '');
      }
      throw error;
    }
  };
}
