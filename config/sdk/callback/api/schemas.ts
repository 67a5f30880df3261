import { APPROVAL_STATUSES, type ApprovalEvent, type OutcomeStatus } from '../../../../core/approval/request.ts';
import type { Json } from '../../../../core/json.ts';

/* JSON Schemas of what the HTTP API answers and, with the same records, the commands with `--json`. */

export type Schema = { readonly [keyword: string]: Json };
export type Properties = Readonly<Record<string, Schema>>;

export const text: Schema = { type: 'string' };
export const flag: Schema = { type: 'boolean' };
export const count: Schema = { type: 'integer', minimum: 0 };
export const moment: Schema = { type: 'string', format: 'date-time', description: 'ISO 8601, UTC' };
export const json: Schema = {};
export const yes: Schema = { const: true };
const values: Schema = { type: 'object' };
export const oneOf = (...texts: readonly string[]): Schema => ({ enum: texts });
export const list = (items: Schema): Schema => ({ type: 'array', items });
export const about = (schema: Schema, description: string): Schema => ({ ...schema, description });
export const texts = list(text);

/** An object with these properties and no others. */
export const object = (required: Properties, optional: Properties = {}): Schema => ({
  type: 'object',
  properties: { ...required, ...optional },
  required: Object.keys(required),
  additionalProperties: false,
});

/** An object with at least these properties: later versions may add more. */
export const open = (required: Properties, optional: Properties = {}): Schema => ({
  ...object(required, optional),
  additionalProperties: true,
});

const milliseconds = about({ type: 'number', minimum: 0 }, 'milliseconds');
const status = oneOf(...APPROVAL_STATUSES);
const decidedStatus = oneOf(...APPROVAL_STATUSES.filter((one) => one !== 'waiting'));
const cause = oneOf('human', 'timeout', 'policy');
const outcomes: readonly OutcomeStatus[] = [
  'completed',
  'rejected',
  'cancelled',
  'denied',
  'failed',
  'interrupted',
  'stale',
  'lapsed',
  'invalid',
];
const outcome = oneOf(...outcomes);
const parameters = about(values, 'sensitive ones are masked as `{"masked":true}`');

export const principal = open(
  { id: text, groups: texts, verifiedBy: oneOf('token', 'proxy', 'oidc', 'signal', 'nobody') },
  { for: about(open({ id: text, groups: texts }), 'the person in whose place they decide') },
);

export const requiredRole = open({ role: text, count });
const roles = list(requiredRole);

export const vote = open(
  { principal, by: text, at: moment, approved: flag, digest: text },
  { modifiedParams: parameters, reason: text, void: about(yes, 'it does not count') },
);
const votes = list(vote);

export const rule = open(
  { version: text, approve: roles, deny: count },
  {
    not: texts,
    reason: about(text, 'of which decisions need a reason'),
    unverified: yes,
    override: text,
    standing: text,
    remind: list(milliseconds),
    escalate: list(open({ role: text, afterMs: milliseconds })),
  },
);

const eventFields: Properties = {
  by: about(text, 'who decided or read, or which process'),
  from: text,
  as: text,
  principal,
  idempotency: about(
    open({ key: text, decision: text }),
    'digests of the idempotency key and of what was sent with it',
  ),
  prev: about(text, 'digest of the event before it'),
  was: text,
  state: text,
};

const eventTypes: readonly ApprovalEvent['type'][] = [
  'requested',
  'reminded',
  'escalated',
  'revealed',
  'voted',
  'approved',
  'rejected',
  'cancelled',
  'claimed',
  'interrupted',
  'finished',
  'closed',
];

export const event = open({ type: oneOf(...eventTypes), at: moment }, eventFields);
export const delegation = open(
  { delegationId: text, from: text, groups: texts, to: text, createdAt: moment, until: moment },
  { revokedAt: moment },
);
export const atMost = about(
  { type: 'object', additionalProperties: { type: 'number' } },
  'parameters that may also be lower, and their highest value',
);
export const standingRule = open(
  {
    standingId: text,
    requestId: about(text, 'of the request that was approved'),
    agentTag: text,
    tool: text,
    parameters: values,
    atMost,
    by: about(text, 'who made it'),
    uses: count,
    used: count,
    createdAt: moment,
    until: moment,
  },
  { revokedAt: moment },
);
export const outcomeOfCall = open({ status: outcome, result: json });
export const delivery = open({ at: moment, channel: text, delivered: flag }, { error: text });

export const request = open(
  {
    requestId: text,
    executionId: text,
    agentTag: text,
    tool: text,
    parameters,
    reason: about(text, 'why the call needs approval'),
    timestamp: moment,
    timeout: about(moment, 'when the request expires; ISO 8601, UTC'),
    toolDigest: text,
    status,
    run: about(oneOf('none', 'claimed', 'done', 'unknown'), 'whether the tool ran'),
    events: list(event),
  },
  {
    toolCallId: text,
    groupId: about(text, 'shared by the calls of one turn of the model'),
    requester: text,
    model: text,
    cause,
    rule,
    votes,
    missing: about(roles, 'the approvals that the request lacks'),
    decidedAt: moment,
    decidedBy: text,
    override: yes,
    standing: text,
    deciders: list(principal),
    validUntil: moment,
    unattendedSince: about(moment, 'no process waits for the decision since then; ISO 8601, UTC'),
    decisionReason: text,
    modifiedParams: parameters,
    outcome: outcomeOfCall,
    // Of one request, not in lists.
    reviewToken: about(text, 'proof that the whole request was shown: send it with the decision'),
    digest: about(text, 'the beginning of the digest of the request'),
    modelText: about(text, 'the beginning of what the model wrote before the call, if the program said'),
    definition: open({ description: text, schema: values }),
    deliveries: list(delivery),
  },
);

export const decisionFields: readonly [required: Properties, optional: Properties] = [
  {
    requestId: text,
    executionId: text,
    status: about(status, '`waiting`: the decision is a vote, and the rule of the request requires more'),
    decidedAt: moment,
  },
  { unattendedSince: moment, votes, missing: roles },
];

const [resultFields] = decisionFields;

export const decisionResult = open({ ...resultFields, status: decidedStatus }, { unattendedSince: moment, votes });

/** A vote that was stored, where the rule of the request requires more. */
export const voteResult = open(
  { ...resultFields, status: { const: 'waiting' }, votes, missing: roles },
  { unattendedSince: moment },
);

export const auditEntry = open(
  {
    requestId: text,
    executionId: text,
    agentTag: text,
    tool: text,
    type: oneOf(...eventTypes, 'delivered', 'not_delivered'),
    at: moment,
  },
  { ...eventFields, details: values },
);

export const execution = open(
  {
    executionId: text,
    agentTag: text,
    status: oneOf('running', 'completed', 'failed', 'cancelled'),
    createdAt: moment,
    updatedAt: moment,
    usage: open({ inputTokens: count, outputTokens: count }),
    calls: list(
      open({ requestId: about(text, 'of its request, if the call needed approval'), tool: text }, { status: outcome }),
    ),
  },
  { requester: text, reason: about(text, 'why it was cancelled'), error: about(text, 'the code of its error') },
);

const changed: Properties = {
  requestId: text,
  executionId: text,
  agentTag: text,
  tool: text,
  timestamp: moment,
  timeout: moment,
};
const decided: Properties = { decidedAt: moment, decidedBy: text };

/** The kinds of changes, by `type`. */
export const changes = {
  created: open({ type: { const: 'created' }, ...changed, status: { const: 'waiting' } }),
  voted: open({ type: { const: 'voted' }, ...changed, status: { const: 'waiting' }, missing: roles }),
  decided: open({ type: { const: 'decided' }, ...changed, status: decidedStatus, ...decided }, { cause }),
  expired: open({ type: { const: 'expired' }, ...changed, status: decidedStatus, ...decided, cause }),
} as const satisfies Properties;

/** The body of a decision. */
export const decisionBody = object(
  { approved: flag },
  {
    reason: { type: ['string', 'null'] },
    modifiedParams: about({ type: ['object', 'null'] }, 'with an approval: only the parameters to change'),
    override: about(flag, 'decide alone, if the rule lets you'),
    reviewToken: about(text, 'of the request as you read it; needed if it has sensitive parameters'),
  },
);

export const parameterProblem = open({ parameter: about(text, 'the path, such as `items[0].sku`'), why: text });

export const error = open(
  { error: about(text, 'a code'), message: text },
  {
    status: about(status, 'with `approval_decided` and `approval_expired`'),
    decidedAt: moment,
    problems: about(
      list({ anyOf: [parameterProblem, text] }),
      'with `approval_parameters_invalid` of parameters, and with `decision_invalid` as texts',
    ),
    errorId: about(text, 'with `internal`: the server has logged the error with this id'),
  },
);
