import * as assert from 'node:assert/strict';
import fc from 'fast-check';
import { compileRules } from '../config/load/approval-rules.ts';
import type { StorageBackend } from '../core/approval/backend.ts';
import type { Principal } from '../core/approval/principal.ts';
import { isSvcError } from '../core/errors.ts';
import { cassandra } from '../plugins/dialects/cassandra/dialect.ts';
import { postgresql } from '../plugins/dialects/postgresql/dialect.ts';
import { MemoryStore } from '../plugins/stores/memory.ts';
import { freshKeyspace, unavailable as noCassandra } from './kit/cassandra.ts';
import { freshDatabase, unavailable } from './kit/postgresql.ts';
import { storeUnderTest } from './kit/store-under-test.ts';
import { test } from './kit/test.ts';
import {
  type ApprovalProcess,
  approve,
  Bank,
  compileTestTools,
  createGate,
  openApprovalProcess,
  readRow,
  refund,
  reject,
  startCall,
} from './suites/approval-setup.ts';

// Votes, edits, delegations and clock steps in any order, compared with a model that tries every way to place people in roles: nothing is
// approved without distinct, eligible, verified people for every place, and nothing is rejected without enough of them.

const TIMEOUT_MS = 60_000;
const AGENT = 'payouts';
const REQUESTER = 'Req';

type Person = Pick<Principal, 'id' | 'groups'>;

const PEOPLE: readonly Person[] = [
  { id: 'ann', groups: ['finance'] },
  // The same person, as another channel spells the id.
  { id: 'ANN', groups: ['finance', 'ops'] },
  { id: 'bo', groups: ['finance', 'ops'] },
  { id: 'cy', groups: ['ops'] },
  { id: 'dee', groups: [] },
  { id: 'req', groups: ['finance', 'ops', 'heads'] },
  { id: 'hal', groups: ['heads'] },
  { id: 'agent:other', groups: ['finance', 'ops'] },
  { id: AGENT, groups: ['finance', 'ops'] },
  { id: 'eve', groups: ['contractors', 'finance', 'heads'] },
];

interface ModelRule {
  readonly approve: readonly { readonly role: 'finance' | 'ops'; readonly count: number }[];
  readonly deny: number;
  readonly not?: readonly string[];
  readonly unverified?: boolean;
  readonly override?: 'heads';
  /** To the heads. */
  readonly escalate?: number;
}

const RULES: readonly ModelRule[] = [
  { approve: [{ role: 'finance', count: 2 }], deny: 1, escalate: 15_000 },
  {
    approve: [
      { role: 'ops', count: 1 },
      { role: 'finance', count: 1 },
    ],
    deny: 2,
  },
  {
    approve: [
      { role: 'finance', count: 2 },
      { role: 'ops', count: 1 },
    ],
    deny: 1,
    not: ['group:contractors'],
    escalate: 25_000,
  },
  { approve: [{ role: 'finance', count: 2 }], deny: 2, unverified: true, override: 'heads' },
  { approve: [{ role: 'ops', count: 2 }], deny: 1, not: ['user:CY', 'requester'] },
];
const REASON = 'because';
const ROLES = { finance: ['group:finance'], ops: ['group:ops'], heads: ['group:heads'] };

type Action =
  | {
      readonly do: 'vote';
      readonly who: number;
      readonly verified: 'signal' | 'token' | 'nobody';
      readonly yes: boolean;
      readonly amount: number | undefined;
      readonly override: boolean;
    }
  | { readonly do: 'delegate'; readonly from: number; readonly to: number; readonly ms: number }
  | { readonly do: 'pass'; readonly ms: number };

const vote: fc.Arbitrary<Action> = fc.record({
  do: fc.constant('vote' as const),
  // Mostly those who may decide, so that most sequences decide.
  who: fc.oneof({ arbitrary: fc.constantFrom(0, 1, 2, 3), weight: 2 }, fc.nat(PEOPLE.length - 1)),
  verified: fc.constantFrom('signal', 'signal', 'signal', 'token', 'nobody'),
  yes: fc.constantFrom(true, true, false),
  amount: fc.constantFrom(undefined, undefined, 20, 15, 900),
  override: fc.oneof({ arbitrary: fc.constant(false), weight: 9 }, fc.constant(true)),
});
/** No sum of these is near a deadline or an escalation: a test itself takes some milliseconds. */
const STEP_MS = 1_100;
const pass: fc.Arbitrary<Action> = fc.record({
  do: fc.constant('pass' as const),
  ms: fc.nat(27).map((steps) => steps * STEP_MS),
});

const delegate: fc.Arbitrary<Action> = fc.record({
  do: fc.constant('delegate' as const),
  from: fc.nat(PEOPLE.length - 1),
  to: fc.constantFrom(3, 4, 5, 6, 7, 9),
  // As with the steps of the clock, no sum of them ends one.
  ms: fc.constantFrom(10_650, 40_150, 3_600_000),
});

type Someone = Person & { readonly verified: boolean };

/** Who votes, and in whose place. */
interface Voter {
  readonly authority: Someone;
  readonly key: string;
}

const keyOf = ({ id, verified }: Someone): string => (verified ? id.toLowerCase() : 'anybody');

/** The rules of one request, in the simplest words. */
class Model {
  readonly #rule: ModelRule;
  readonly #votes = new Map<string, Voter & { readonly yes: boolean; readonly amount: number }>();
  readonly #delegations: { readonly from: Someone; readonly to: string; readonly until: number }[] = [];
  #status = 'waiting';
  #passed = 0;
  #edit: number | undefined;

  constructor(rule: ModelRule) {
    this.#rule = rule;
  }

  get status(): string {
    return this.#status === 'expired' ? 'rejected' : this.#status;
  }

  pass(ms: number): void {
    this.#passed += ms;
    if (this.#passed >= TIMEOUT_MS && this.#status === 'waiting') this.#status = 'expired';
  }

  delegate({ from, to, ms }: Extract<Action, { do: 'delegate' }>): boolean {
    const [one, other] = [PEOPLE[from]!, PEOPLE[to]!.id.toLowerCase()];
    if (one.id.toLowerCase() === other || other.startsWith('agent:')) return false;
    this.#delegations.push({ from: { ...one, verified: true }, to: other, until: this.#passed + ms });
    return true;
  }

  vote({ who, verified, yes, amount, override }: Extract<Action, { do: 'vote' }>): string {
    const edited = yes ? (amount ?? 20) : 20;
    if (this.#status === 'expired') return 'approval_expired';
    if (this.#status !== 'waiting') {
      // The decision without changes is repeated only by one without changes.
      const isSameCall = this.#edit === undefined ? amount === undefined : this.#edit === edited;
      const same = this.#status === (yes ? 'approved' : 'rejected') && (!yes || isSameCall);
      return same ? this.#status : 'approval_decided';
    }
    const named = PEOPLE[who]!;
    const person = { ...named, verified: verified !== 'nobody', groups: verified === 'nobody' ? [] : named.groups };
    if (edited >= 500) return 'decision_refused';
    if (override) {
      const may = this.#rule.override !== undefined && person.groups.includes('heads') && !this.#isExcluded(person);
      if (!may) return 'decision_refused';
      this.#status = yes ? 'approved' : 'rejected';
      this.#edit = amount;
      return this.#status;
    }
    const key = keyOf(person);
    const voter = this.#voterOf(person);
    if (!voter) return 'decision_refused';
    const own = this.#votes.get(key);
    const taken = this.#takenBy(key, voter);
    if (own?.yes !== yes || own.amount !== edited || own.key !== voter.key) {
      if (taken.length > 0 && voter.key !== key) return 'decision_refused';
      for (const one of [...taken, key]) this.#votes.delete(one);
      this.#votes.set(key, { ...voter, yes, amount: edited });
    }
    const counted = [...this.#votes.values()].filter((one) => one.yes === yes && (!yes || one.amount === edited));
    if (yes) {
      if (this.#missing(counted) === 0) {
        this.#status = 'approved';
        this.#edit = amount;
      }
    } else if (counted.length >= this.#rule.deny) this.#status = 'rejected';
    return this.#status;
  }

  /** They themselves, or the one of their delegators whose vote is free and helps most. */
  #voterOf(person: Someone): Voter | undefined {
    const key = keyOf(person);
    if (this.#mayDecide(person)) return { authority: person, key };
    if (!person.verified || this.#isExcluded(person)) return undefined;
    const others = [...this.#votes].filter(([one]) => one !== key).map(([, vote]) => vote);
    const isTaken = (voter: Voter) => this.#takenBy(key, voter).length > 0;
    const ranked = this.#delegations
      .filter(({ to, until, from }) => to === key && until > this.#passed && this.#mayDecide(from))
      .map(({ from }): Voter => ({ authority: from, key: keyOf(from) }))
      .map((voter) => ({
        voter,
        rank: isTaken(voter) ? Infinity : this.#missing([...others.filter(({ yes }) => yes), voter]),
      }));
    return ranked.sort((one, other) => (one.rank < other.rank ? -1 : one.rank > other.rank ? 1 : 0))[0]?.voter;
  }

  /** Who else has voted with a part of one of these two people. */
  #takenBy(key: string, voter: Voter): readonly string[] {
    return [...this.#votes]
      .filter(([one, vote]) => one !== key && [one, vote.key].some((part) => part === key || part === voter.key))
      .map(([one]) => one);
  }

  #missing(voters: readonly Voter[]): number {
    const places = this.#rule.approve.flatMap(({ role, count }) => Array<string>(count).fill(role));
    const roles = voters.map(({ authority }) => this.#rolesOf(authority));
    return places.length - mostFilled(places, roles);
  }

  #mayDecide(person: Person & { readonly verified: boolean }): boolean {
    if (!person.verified && !this.#rule.unverified) return false;
    return !this.#isExcluded(person) && this.#rolesOf(person).length > 0;
  }

  #isExcluded(person: Person): boolean {
    const id = person.id.toLowerCase();
    if (id === 'req' || id === AGENT || id.startsWith('agent:')) return true;
    const not = this.#rule.not ?? [];
    if (not.includes(`user:${person.id.toUpperCase()}`)) return true;
    return person.groups.some((group) => not.includes(`group:${group}`));
  }

  #rolesOf(person: Person & { readonly verified: boolean }): readonly string[] {
    const isAdded = this.#passed >= (this.#rule.escalate ?? Infinity) && person.groups.includes('heads');
    return this.#rule.approve
      .map(({ role }) => role)
      .filter((role) => !person.verified || isAdded || person.groups.includes(role));
  }
}

/** Tries every person in every place, and leaves each place empty. */
function mostFilled(places: readonly string[], people: readonly (readonly string[])[]): number {
  const [place, ...others] = places;
  if (place === undefined) return 0;
  const without = mostFilled(others, people);
  const filled = people.map((roles, index) =>
    roles.includes(place)
      ? 1 +
        mostFilled(
          others,
          people.filter((_, other) => other !== index),
        )
      : 0,
  );
  return Math.max(without, ...filled);
}

interface Real {
  readonly app: ApprovalProcess;
  /** An agent gets none. */
  readonly tokens: readonly (string | undefined)[];
  pass?(ms: number): Promise<void>;
}

async function open(backend: StorageBackend): Promise<Real> {
  const configured = RULES.map(({ escalate, ...rule }, index) => ({
    ...rule,
    ...(escalate !== undefined && { escalate: [{ after: `${escalate / 1_000}s`, to: 'heads' }], expires: '60s' }),
    match: { tool: `refund${index}`, where: { amount: { lt: 500 } } },
  }));
  const heads = { approve: [{ role: 'heads' }] };
  const { rules, problems } = compileRules({ roles: ROLES, rules: [...configured, heads] });
  assert.deepEqual(problems, []);
  const app = await openApprovalProcess(backend, undefined, rules);
  const tokens: (string | undefined)[] = [];
  for (const person of PEOPLE) {
    const isAgent = person.id.startsWith('agent:');
    tokens.push(isAgent ? undefined : (await app.service.personTokens.create(person, { validForMs: 1e9 })).token);
  }
  return { app, tokens };
}

async function follow({ app, tokens, pass }: Real, ruleAt: number, actions: readonly Action[]): Promise<void> {
  const bank = new Bank();
  const tool = `refund${ruleAt}`;
  const humanInLoop = { approvalTimeout: TIMEOUT_MS };
  const gate = createGate(app, compileTestTools(bank.tool({ tag: tool })), { agentTag: AGENT, humanInLoop });
  const { request, outcome } = await startCall(gate, refund(undefined, { tool, requester: REQUESTER }));
  const model = new Model(RULES[ruleAt]!);
  const delegationIds: string[] = [];
  for (const action of actions) {
    if (action.do === 'delegate') {
      const [from, to] = [PEOPLE[action.from]!, PEOPLE[action.to]!.id];
      const until = new Date((await app.service.clock.readNow()) + action.ms);
      const made = await app.service.delegations.create({ from, to, until }).catch(() => undefined);
      if (made) delegationIds.push(made.delegationId);
      assert.equal(made !== undefined, model.delegate(action));
    } else if (action.do === 'pass') {
      await pass?.(action.ms);
      if (pass) model.pass(action.ms);
    } else {
      const options = optionsOf(action, tokens);
      const edit = action.amount === undefined ? undefined : { amount: action.amount };
      const decision = action.yes
        ? approve(app, request, edit, options, REASON)
        : reject(app, request, REASON, options);
      const result = await decision.then(
        ({ status }) => status,
        (error) => (isSvcError(error) ? error.code : String(error)),
      );
      assert.equal(result, model.vote(action), JSON.stringify(action));
    }
    assert.equal((await readRow(app, request)).record.status, model.status);
  }
  for (const delegationId of delegationIds) await app.service.delegations.revoke(delegationId);
  if (model.status === 'waiting') await app.service.cancelAll(request.executionId, 'the end', 'test');
  const { status } = await outcome;
  assert.equal(status === 'completed', model.status === 'approved');
  assert.equal(bank.paid.length, model.status === 'approved' ? 1 : 0);
}

function optionsOf({ who, verified, override }: Extract<Action, { do: 'vote' }>, tokens: Real['tokens']) {
  const { id, groups } = PEOPLE[who]!;
  const token = verified === 'token' ? tokens[who] : undefined;
  if (token !== undefined) return { token, override };
  return verified === 'nobody' ? { actor: id, override } : { principal: { id, groups }, override };
}

const sequences = (action: fc.Arbitrary<Action>) =>
  [fc.nat(RULES.length - 1), fc.array(action, { minLength: 1, maxLength: 20 })] as const;

test('memory: no sequence approves without the quorum, or rejects without those who may', async () => {
  await fc.assert(
    fc.asyncProperty(
      ...sequences(fc.oneof({ arbitrary: vote, weight: 8 }, delegate, pass)),
      async (ruleAt, actions) => {
        let now = Date.parse('2026-11-25T10:00:00Z');
        const real = await open(new MemoryStore(() => now));
        const { service } = real.app;
        try {
          const pass = async (ms: number) => {
            now += ms;
            await service.clock.readNow();
            await service.sweep();
          };
          await follow({ ...real, pass }, ruleAt, actions);
        } finally {
          await service.close();
        }
      },
    ),
    { numRuns: Number(process.env.SVC_TEST_RUNS ?? 150) },
  );
});

const STORES = [
  { name: 'PostgreSQL', store: storeUnderTest(postgresql, freshDatabase, await unavailable()), numRuns: 20 },
  { name: 'Cassandra', store: storeUnderTest(cassandra, freshKeyspace, noCassandra), numRuns: 5 },
];

for (const { name, store, numRuns } of STORES) {
  const title = `${name}: no sequence approves without the quorum, or rejects without those who may`;
  if (store.skip !== undefined) test.skip(title, String(store.skip));
  else {
    const body = async () => {
      const database = await store.createStore();
      const backend = await database.connect();
      const real = await open(backend);
      try {
        const property = fc.asyncProperty(
          ...sequences(fc.oneof({ arbitrary: vote, weight: 6 }, delegate)),
          (ruleAt, actions) => follow(real, ruleAt, actions),
        );
        await fc.assert(property, { numRuns });
      } finally {
        await real.app.service.close();
        await backend.close();
        await database.drop();
      }
    };
    test(title, body, { timeoutMs: 120_000 });
  }
}
