import { v7 as uuid } from 'uuid';
import { SvcError } from '../errors.ts';
import { jsonDigest } from '../json.ts';
import { allRows, type RecordStore } from '../records.ts';
import { type Problem, problemText, type Shape, shapeProblems } from '../validate-shape.ts';
import type { PersonToken, PersonTokens } from './person-tokens.ts';
import { createPrincipal, type Principal, principalProblems, type SignalPrincipal } from './principal.ts';
import { revokeRow } from './revoke-row.ts';
import { isAgentId, isSamePerson, personKey } from './rule.ts';
import type { DelegationRow } from './schema.ts';
import type { StoreClock } from './store-clock.ts';
import { untilProblems } from './valid-until.ts';

const DELEGATION_ID = /^dlg_[0-9a-f-]{36}$/;

/** For `People.delegate`: who delegates, proven by a token or by the program, as a decision is. @experimental */
export interface NewDelegation {
  /** The token of the person who delegates. Throws `token_invalid`. */
  readonly token?: string | undefined;
  /** The person who delegates, if your program has verified who that is. */
  readonly from?: SignalPrincipal | undefined;
  /** The id of the person who decides in their place. */
  readonly to: string;
  /** When it ends, by the store's clock: at most a year from now. It ends sooner with the token that made it. */
  readonly until: Date;
}

/** @experimental */
export interface Delegation {
  readonly delegationId: string;
  /** The id of the person who delegated. */
  readonly from: string;
  /** Their groups at that time, which rules can name. */
  readonly groups: readonly string[];
  /** The id of the person who decides in their place. */
  readonly to: string;
  /** ISO 8601, UTC. */
  readonly createdAt: string;
  /** ISO 8601, UTC. */
  readonly until: string;
  /** ISO 8601, UTC. */
  readonly revokedAt?: string;
}

/** Who decides in the place of whom, in the store of the approvals. */
export class Delegations {
  readonly #rows: RecordStore<DelegationRow>;
  readonly #tokens: PersonTokens;
  readonly #clock: StoreClock;

  constructor(rows: RecordStore<DelegationRow>, tokens: PersonTokens, clock: StoreClock) {
    this.#rows = rows;
    this.#tokens = tokens;
    this.#clock = clock;
  }

  /** Throws `value_invalid` and `token_invalid`. */
  async create(delegation: NewDelegation): Promise<Delegation> {
    const now = await this.#clock.readNow();
    const problems = delegationProblems(delegation, now);
    if (problems.length > 0) throw invalidDelegation(problems.map(problemText).join(' '));
    const { token, from, to, until } = delegation;
    const owner = token === undefined ? undefined : await this.#tokens.find(token);
    const { id, groups } = owner?.principal ?? createPrincipal(from ?? { id: '' }, 'signal');
    if (isSamePerson(id, to)) throw invalidDelegation('Nobody can delegate to themselves.');
    if (isAgentId(to)) throw invalidDelegation('An agent cannot decide.');
    const row: DelegationRow = {
      delegationId: `dlg_${uuid()}`,
      state: 'active',
      person: keyOf(createPrincipal({ id: to }, 'token')),
      createdAt: new Date(now),
      expiresAt: owner && owner.expiresAt < until ? owner.expiresAt : until,
      body: { from: id, groups, to, ...(owner && { tokenId: owner.tokenId }) },
    };
    await this.#rows.insert(row);
    return toDelegation(row);
  }

  /** Those who have delegated to a person, oldest first. */
  async delegatorsOf(person: Principal): Promise<readonly Pick<Principal, 'id' | 'groups'>[]> {
    const found: Pick<Principal, 'id' | 'groups'>[] = [];
    const now = await this.#clock.readNow();
    const query = { equals: { state: 'active' as const, person: keyOf(person) }, limit: 100 };
    for await (const { record } of allRows(this.#rows, 'byPerson', query)) {
      const { from, groups, tokenId } = record.body;
      if (record.expiresAt.getTime() <= now) continue;
      const token = await this.#tokenOf(record);
      if (tokenId === undefined || (token && token.revokedAt === undefined)) found.push({ id: from, groups });
    }
    return found;
  }

  /** Every delegation, oldest first; those that have ended too. */
  async *list(): AsyncGenerator<Delegation> {
    for (const state of ['active', 'revoked'] as const) {
      for await (const { record } of allRows(this.#rows, 'byState', { equals: { state }, limit: 500 })) {
        yield toDelegation(record, (await this.#tokenOf(record))?.revokedAt);
      }
    }
  }

  /** Ends a delegation, of `by` only if given. Revoking it again changes nothing. Throws `delegation_unknown`. */
  async revoke(delegationId: string, by?: Principal): Promise<Delegation> {
    const found = DELEGATION_ID.test(delegationId) ? await this.#rows.get(delegationId) : undefined;
    const isOwn = by === undefined || (found !== undefined && isSamePerson(found.record.body.from, by.id));
    const revoked = found && isOwn ? await revokeRow(this.#rows, this.#clock, delegationId) : undefined;
    if (revoked) return toDelegation(revoked);
    throw new SvcError('delegation_unknown', 'No delegation has this id.', {
      state: 'Nothing was revoked.',
      next: ['svc people delegation list    lists the delegations'],
    });
  }

  /** The token that made it, if one did. */
  async #tokenOf({ body }: DelegationRow): Promise<PersonToken | undefined> {
    return body.tokenId === undefined ? undefined : this.#tokens.get(body.tokenId);
  }
}

const DELEGATION: Shape = {
  properties: { token: 'string', from: 'any', to: 'string', until: 'any' },
  required: ['to', 'until'],
};

function delegationProblems(delegation: NewDelegation, now: number): Problem[] {
  const problems = shapeProblems(delegation, DELEGATION);
  if (problems.length > 0) return problems;
  const { token, from, to, until } = delegation;
  if ((token === undefined) === (from === undefined)) {
    problems.push({ path: ['from'], text: 'is required, or token in its place' });
  }
  if (from !== undefined) problems.push(...principalProblems(from, ['from']));
  problems.push(...principalProblems({ id: to }, []).map(({ text }) => ({ path: ['to'], text })));
  return [...problems, ...untilProblems(until, now)];
}

/** Of a person: an id may be longer than a key. */
const keyOf = (person: Principal): string => jsonDigest(personKey(person));

/** `tokenRevokedAt`: when the token that made it was revoked, which ends it too. */
function toDelegation(
  { delegationId, createdAt, expiresAt, body }: DelegationRow,
  tokenRevokedAt?: string,
): Delegation {
  const { from, groups, to, revokedAt = tokenRevokedAt } = body;
  return {
    delegationId,
    from,
    groups,
    to,
    createdAt: createdAt.toISOString(),
    until: expiresAt.toISOString(),
    ...(revokedAt !== undefined && { revokedAt }),
  };
}

function invalidDelegation(why: string): SvcError {
  return new SvcError('value_invalid', 'The delegation cannot be created.', { why, state: 'Nothing was delegated.' });
}
