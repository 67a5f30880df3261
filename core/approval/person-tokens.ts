import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { SvcError } from '../errors.ts';
import { allRows, type RecordStore } from '../records.ts';
import { problemText } from '../validate-shape.ts';
import { createPrincipal, type Principal, principalProblems, type SignalPrincipal } from './principal.ts';
import { revokeRow } from './revoke-row.ts';
import { isAgentId, isListed } from './rule.ts';
import type { PersonTokenRow } from './schema.ts';
import { SharedRead } from './shared-read.ts';
import type { StoreClock } from './store-clock.ts';
import { tokensEqual } from './token.ts';

/*
 * A token proves who its owner is, to the command line (SVC_TOKEN) and to the callback (Authorization: Bearer):
 *
 *   svcp_<id, 12><secret, 43><checksum, 6>    in letters and digits
 *
 * The prefix and the checksum let secret scanners find it without false alarms. The store has a hash: 256 random bits need
 * no salt and no slow function.
 */

const PREFIX = 'svcp_';
const ID_LENGTH = 12;
const SECRET_LENGTH = 43;
const CHECKSUM_LENGTH = 6;
const FORMAT = new RegExp(`^${PREFIX}[0-9A-Za-z]{${ID_LENGTH + SECRET_LENGTH + CHECKSUM_LENGTH}}$`);
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/** The key of the row that says who approves plans of migrations. No token has this id. */
const APPROVERS = 'plan-approvers';
/** The key of the row that changes whenever a token was revoked. No token has this id. */
const REVOCATION = 'last-revocation';
/** Verifications of a process share a read of that row in this time. */
const REVOCATION_READ_MS = 20;
/** How long `findAgain` trusts it: what is written to the table by other means does not change it. */
const MAX_FOUND_MS = 10_000;
const MAX_FOUND = 10_000;

/** Ten years. */
const MAX_VALID_MS = 315_576_000_000;

/** For `People.createToken`. @experimental */
export interface NewToken {
  /** Milliseconds, up to ten years. */
  readonly validForMs: number;
  /** The token of a person who already approves plans of migrations. */
  readonly by?: string | undefined;
}

/** A token without its secret. @experimental */
export interface PersonToken {
  readonly tokenId: string;
  readonly principal: string;
  readonly groups: readonly string[];
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** ISO 8601, UTC. */
  readonly expiresAt: string;
  /** ISO 8601, UTC. */
  readonly revokedAt?: string;
}

/** The owner of a valid token. */
interface FoundToken {
  readonly principal: Principal;
  readonly tokenId: string;
  readonly expiresAt: Date;
}

/** Whether a text claims to be a token, by its prefix: then it must be a valid one. */
export const isPersonToken = (text: string): boolean => text.startsWith(PREFIX);

/** The tokens of people, in the store of the approvals. */
export class PersonTokens {
  readonly #rows: RecordStore<PersonTokenRow>;
  readonly #clock: StoreClock;
  readonly #lastRevocation: SharedRead<string | undefined>;
  /** By the hash of the token, oldest first. */
  readonly #found = new Map<
    string,
    { readonly token: FoundToken; readonly revocation: string | undefined; readonly until: number }
  >();

  constructor(rows: RecordStore<PersonTokenRow>, clock: StoreClock) {
    this.#rows = rows;
    this.#clock = clock;
    this.#lastRevocation = new SharedRead(async () => (await rows.get(REVOCATION))?.record.hash, REVOCATION_READ_MS);
  }

  /**
   * Stores a new token. Its text is returned here and never again. Throws `value_invalid`, also for an agent, and
   * `approver_required` without the token `by` of an approver of plans, for another one.
   */
  async create(
    owner: SignalPrincipal,
    { validForMs, by }: NewToken,
  ): Promise<PersonToken & { readonly token: string }> {
    const problems = principalProblems(owner, []);
    if (!Number.isInteger(validForMs) || validForMs < 1 || validForMs > MAX_VALID_MS) {
      problems.push({ path: ['validForMs'], text: 'is not a whole number of milliseconds, up to ten years' });
    }
    if (problems.length > 0) {
      throw new SvcError('value_invalid', 'The token cannot be created.', {
        why: problems.map(problemText).join(' '),
        state: 'No token was created.',
      });
    }
    const created = createPrincipal(owner, 'token');
    const { id: principal, groups } = created;
    if (isAgentId(principal)) {
      throw new SvcError('value_invalid', 'The token cannot be created.', {
        why: `An agent cannot decide, and "${principal}" is the id of one.`,
        state: 'No token was created.',
        next: ['Create it for the person who decides, with an id that does not begin with "agent:".'],
      });
    }
    const members = await this.approvers();
    if (isListed(members, created)) await this.#assertApprover(members, by, `${principal} may approve migrations.`);
    const now = await this.#clock.readNow();
    for (;;) {
      const tokenId = randomText(ID_LENGTH);
      const body = `${PREFIX}${tokenId}${randomText(SECRET_LENGTH)}`;
      const token = `${body}${checksum(body)}`;
      const row: PersonTokenRow = {
        tokenId,
        state: 'active',
        hash: hashOf(token),
        createdAt: new Date(now),
        expiresAt: new Date(now + validForMs),
        body: { principal, groups },
      };
      if ((await this.#rows.insert(row)) === 'inserted') return { ...toPersonToken(row), token };
    }
  }

  /**
   * The id of the store, which remembers who approves plans of migrations: `user:<id>` and `group:<name>`, and who else
   * verifies them. Throws `approver_required` for others than it remembers, without the token `by` of one of those.
   */
  async keepApprovers(members: readonly string[], by: string | undefined): Promise<string> {
    const groups = [...members].sort();
    for (;;) {
      const found = await this.#rows.get(APPROVERS);
      if (!found) {
        const now = new Date(await this.#clock.readNow());
        const body = { principal: randomUUID(), groups };
        const row = { tokenId: APPROVERS, state: 'approvers', hash: '', createdAt: now, expiresAt: now, body } as const;
        await this.#rows.insert(row);
        continue;
      }
      const { principal, groups: remembered } = found.record.body;
      if (remembered.join('\n') === groups.join('\n')) return principal;
      const why = `They are ${remembered.join(', ')}; the configuration names ${groups.join(', ')}.`;
      await this.#assertApprover(remembered, by, why);
      await this.#rows.replace(APPROVERS, found.version, { ...found.record, body: { principal, groups } });
    }
  }

  /** Those that `keepApprovers` remembers; none before. */
  async approvers(): Promise<readonly string[]> {
    return (await this.#rows.get(APPROVERS))?.record.body.groups ?? [];
  }

  /** The first of the approvers needs nobody. */
  async #assertApprover(members: readonly string[], by: string | undefined, why: string): Promise<void> {
    if (by !== undefined && isListed(members, await this.verify(by))) return;
    const tokenIds: string[] = [];
    for await (const { tokenId, principal: id, groups } of this.list()) {
      if (isListed(members, createPrincipal({ id, groups }, 'token'))) tokenIds.push(tokenId);
    }
    if (tokenIds.length > 0) throw approverRequired(why, tokenIds);
  }

  /** The owner of a token. Throws `token_invalid`; the message does not contain the token. */
  async verify(token: string): Promise<Principal> {
    return (await this.find(token)).principal;
  }

  async get(tokenId: string): Promise<PersonToken | undefined> {
    const row = (await this.#rows.get(tokenId))?.record;
    return row && toPersonToken(row);
  }

  /** As `verify`, with the id of the token and its end. */
  async find(token: string): Promise<FoundToken> {
    const row = hasFormat(token) ? (await this.#rows.get(tokenIdOf(token)))?.record : undefined;
    if (!row || !tokensEqual(row.hash, hashOf(token))) throw invalidToken('It is not a token of this store.');
    if (row.state === 'revoked')
      throw invalidToken(`It was revoked${row.body.revokedAt ? ` at ${row.body.revokedAt}` : ''}.`);
    // The clock of the store, as it is now: a second counts for a token that was to end.
    if ((await this.#clock.readNow()) >= row.expiresAt.getTime()) {
      throw invalidToken(`It expired at ${row.expiresAt.toISOString()}.`);
    }
    const { principal: id, groups } = row.body;
    const { tokenId, expiresAt } = row;
    return { principal: createPrincipal({ id, groups }, 'token'), tokenId, expiresAt };
  }

  /**
   * As `find`, for pages that are loaded again and again: without a read of its own while no token was revoked since the last
   * one. A token that was revoked before the call is never found.
   */
  async findAgain(token: string): Promise<FoundToken> {
    const hash = hashOf(token);
    const known = this.#found.get(hash);
    if (known && performance.now() < known.until && (await this.#lastRevocation.read()) === known.revocation) {
      if ((await this.#clock.now()) < known.token.expiresAt.getTime()) return known.token;
    }
    this.#found.delete(hash);
    // Of a read before that of the token: a later revocation changes it.
    const revocation = this.#lastRevocation.latest;
    const found = await this.find(token);
    const [oldest] = this.#found.keys();
    if (this.#found.size >= MAX_FOUND && oldest !== undefined) this.#found.delete(oldest);
    this.#found.set(hash, { token: found, revocation, until: performance.now() + MAX_FOUND_MS });
    return found;
  }

  /** Every token, by its id; those that were revoked or have expired too. */
  async *list(): AsyncGenerator<PersonToken> {
    for (const state of ['active', 'revoked'] as const) {
      for await (const { record } of allRows(this.#rows, 'byState', { equals: { state }, limit: 500 })) {
        yield toPersonToken(record);
      }
    }
  }

  /** Revokes a token, also one that has expired. Revoking it again changes nothing. Throws `token_unknown`. */
  async revoke(tokenId: string): Promise<PersonToken> {
    const revoked = /^[0-9A-Za-z]+$/.test(tokenId) ? await revokeRow(this.#rows, this.#clock, tokenId) : undefined;
    if (revoked) {
      await this.#noteRevocation();
      return toPersonToken(revoked);
    }
    throw new SvcError('token_unknown', 'No token has this id.', {
      state: 'Nothing was revoked.',
      next: ['svc people token list    lists the tokens'],
    });
  }

  async #noteRevocation(): Promise<void> {
    const found = await this.#rows.get(REVOCATION);
    const now = new Date(await this.#clock.readNow());
    const row: PersonTokenRow = {
      tokenId: REVOCATION,
      state: 'revocation',
      hash: randomUUID(),
      createdAt: now,
      expiresAt: now,
      body: { principal: '', groups: [] },
    };
    // If another revocation is first, the row has changed since the token of this one was written.
    if (found) await this.#rows.replace(REVOCATION, found.version, row);
    else await this.#rows.insert(row);
  }
}

function toPersonToken({ tokenId, createdAt, expiresAt, body }: PersonTokenRow): PersonToken {
  const { principal, groups, revokedAt } = body;
  return {
    tokenId,
    principal,
    groups,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    ...(revokedAt !== undefined && { revokedAt }),
  };
}

/** Costs no read of the store, so a text that is no token is rejected before one. */
function hasFormat(token: string): boolean {
  return FORMAT.test(token) && checksum(token.slice(0, -CHECKSUM_LENGTH)) === token.slice(-CHECKSUM_LENGTH);
}

const tokenIdOf = (token: string): string => token.slice(PREFIX.length, PREFIX.length + ID_LENGTH);

const hashOf = (token: string): string => createHash('sha256').update(token).digest('base64url');

/** Letters and digits, each of them as likely as any other. */
function randomText(length: number): string {
  let text = '';
  while (text.length < length) {
    for (const byte of randomBytes(length * 2)) {
      // 248 is the largest multiple of 62 in a byte.
      if (byte < 248 && text.length < length) text += DIGITS[byte % DIGITS.length];
    }
  }
  return text;
}

function checksum(text: string): string {
  let digits = '';
  for (let rest = crc32(text); digits.length < CHECKSUM_LENGTH; rest = Math.floor(rest / DIGITS.length)) {
    digits = `${DIGITS[rest % DIGITS.length]}${digits}`;
  }
  return digits;
}

function approverRequired(why: string, tokenIds: readonly string[]): SvcError {
  return new SvcError('approver_required', 'Only a person who approves migrations may change who does.', {
    why,
    state: 'Nothing was changed.',
    next: [
      'Run it with SVC_TOKEN of a person who approves them.',
      `If nobody has one any more, delete the rows of their tokens from _svc_approval_tokens in the database: ${tokenIds.join(', ')}.`,
    ],
  });
}

function invalidToken(why: string): SvcError {
  return new SvcError('token_invalid', 'The token is not valid.', {
    why,
    state: 'Nothing was decided.',
    next: ['svc people token create <id> --expires 90d    creates one'],
  });
}
