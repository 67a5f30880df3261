import { isPlainObject, type Json } from '../../../../core/json.ts';
import {
  about,
  auditEntry,
  changes,
  decisionBody,
  decisionResult,
  delegation,
  delivery,
  error,
  event,
  execution,
  list,
  moment,
  oneOf,
  open,
  outcomeOfCall,
  parameterProblem,
  principal,
  request,
  requiredRole,
  rule,
  type Schema,
  standingRule,
  text,
  texts,
  vote,
  voteResult,
} from './schemas.ts';

/* The schemas that the description of the HTTP API has by name. */

const pathOf = (name: string): string => `#/components/schemas/${name}`;
export const ref = (name: string): Schema => ({ $ref: pathOf(name) });

const WEBHOOK = open(
  {
    type: oneOf('approval_request', 'approval_reminder', 'approval_escalation'),
    requestId: text,
    executionId: text,
    agentTag: text,
    tool: text,
    parameters: about({ type: 'object' }, 'sensitive ones are masked as `{"masked":true}`'),
    timestamp: moment,
    expiresAt: moment,
    callbackUrl: { type: ['string', 'null'] },
  },
  {
    context: open({ reason: text, toolDescription: { type: ['string', 'null'] }, product: text, env: text }),
    notice: open({
      kind: oneOf('reminder', 'escalation'),
      at: moment,
      to: list(open({ role: text, members: texts })),
      missing: list(requiredRole),
    }),
  },
);

/** The data of an event, by `type`, which is also the name of the event. */
const EVENTS: Readonly<Record<string, Schema>> = {
  SyncEvent: open({ type: { const: 'sync' } }),
  CreatedEvent: changes.created,
  VotedEvent: changes.voted,
  DecidedEvent: changes.decided,
  ExpiredEvent: changes.expired,
};
const STREAM_EVENT: Schema = {
  oneOf: Object.keys(EVENTS).map(ref),
  discriminator: {
    propertyName: 'type',
    mapping: {
      sync: pathOf('SyncEvent'),
      created: pathOf('CreatedEvent'),
      voted: pathOf('VotedEvent'),
      decided: pathOf('DecidedEvent'),
      expired: pathOf('ExpiredEvent'),
    },
  },
};

/** By the name that a generated client gives them. */
const SCHEMAS: Readonly<Record<string, Schema>> = {
  ApprovalRequest: request,
  ApprovalEvent: event,
  Rule: rule,
  RequiredRole: requiredRole,
  Vote: vote,
  Outcome: outcomeOfCall,
  Delivery: delivery,
  Delegation: delegation,
  StandingRule: standingRule,
  Principal: principal,
  Decision: decisionBody,
  DecisionResult: decisionResult,
  VoteResult: voteResult,
  AuditEntry: auditEntry,
  Execution: execution,
  StreamEvent: STREAM_EVENT,
  ...EVENTS,
  ApiError: error,
  ParameterProblem: parameterProblem,
  WebhookDelivery: WEBHOOK,
};

/**
 * With a reference for every part that has a name. Objects may have more properties anyway: a generated type that says so knows
 * none of them.
 */
export function withReferences(schema: Schema): Schema {
  const entries = Object.entries(schema).filter(([key, value]) => key !== 'additionalProperties' || value !== true);
  return Object.fromEntries(entries.map(([key, value]) => [key, referring(value)]));
}

function referring(value: Json): Json {
  if (Array.isArray(value)) return value.map(referring);
  if (!isPlainObject(value)) return value;
  const [name] = Object.entries(SCHEMAS).find(([, schema]) => schema === value) ?? [];
  return name === undefined ? withReferences(value as Schema) : ref(name);
}

export const components: Schema = Object.fromEntries(
  Object.entries(SCHEMAS).map(([name, schema]) => [name, withReferences(schema)]),
);
