import { createHash } from 'node:crypto';
import { isPersonToken } from '../../../../core/approval/person-tokens.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import { isListed } from '../../../../core/approval/rule.ts';
import type { ApprovalService } from '../../../../core/approval/service.ts';
import { isSvcError } from '../../../../core/errors.ts';
import { throttle } from '../http-errors.ts';
import { RateLimit } from '../limits.ts';
import type { HttpError } from '../response.ts';

/** Per minute: for what each person reads, for what they send, and for all tokens that are not valid. */
const MAX_PER_PERSON = 600;
const MAX_INVALID = 6_000;
/** Hashes of tokens that were valid, so that others cannot keep out those who have one. */
const MAX_KNOWN = 10_000;

const REFUSED: HttpError = {
  status: 403,
  error: 'access_refused',
  message: 'This person may not list and decide requests here.',
};

/** The owner of a token. */
export interface Caller {
  readonly principal: Principal;
  readonly expiresAt?: Date;
}

/** Finds who calls the API, and limits how often. */
export class Callers {
  readonly #approvals: ApprovalService;
  readonly #members: readonly string[];
  readonly #perPerson = new RateLimit(MAX_PER_PERSON);
  readonly #invalid = new RateLimit(MAX_INVALID);
  readonly #known = new Set<string>();

  /** `members`: of the role of `approvals.server`. */
  constructor(approvals: ApprovalService, members: readonly string[]) {
    this.#approvals = approvals;
    this.#members = members;
  }

  /** Counts a call. Throws an `HttpError` or `token_invalid`. */
  async authenticate(token: string, { method }: Pick<Request, 'method'>): Promise<Caller> {
    const hash = createHash('sha256').update(token).digest('base64url');
    if (!this.#known.has(hash)) throttle(this.#invalid, '', 'only look');
    try {
      const found = await this.#ownerOf(token, method === 'POST' ? 'find' : 'findAgain');
      if (this.#known.size >= MAX_KNOWN) this.#known.clear();
      this.#known.add(hash);
      throttle(this.#perPerson, `${method === 'POST' ? 'POST' : 'GET'} ${found.principal.id}`);
      if (!isListed(this.#members, found.principal)) throw REFUSED;
      return found;
    } catch (error) {
      if (isSvcError(error) && error.code === 'token_invalid') {
        this.#known.delete(hash);
        throttle(this.#invalid, '');
      }
      throw error;
    }
  }

  /** Whether a token that was valid still is, and its owner still of the role. */
  async isAllowed(token: string): Promise<boolean> {
    return isListed(this.#members, (await this.#ownerOf(token, 'findAgain')).principal);
  }

  async #ownerOf(token: string, find: 'find' | 'findAgain'): Promise<Caller> {
    return isPersonToken(token)
      ? await this.#approvals.personTokens[find](token)
      : { principal: await this.#approvals.verifyToken(token) };
  }
}
