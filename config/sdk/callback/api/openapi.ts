import { version } from '../../../../core/version.ts';
import { components, ref, withReferences } from './components.ts';
import {
  about,
  atMost,
  count,
  flag,
  list,
  moment,
  object,
  oneOf,
  open,
  type Properties,
  type Schema,
  text,
  texts,
  yes,
} from './schemas.ts';

/** What an operation may answer besides its result; in the order of the documentation. */
const ERRORS = {
  400: 'The query, the body or a header is not valid.',
  401: 'The token is missing or not valid.',
  403: 'The person may not do this.',
  404: 'There is no such request, execution, delegation or standing rule.',
  405: 'The method is another one: see `Allow`.',
  408: 'The body takes too long.',
  409: 'The request was decided differently.',
  410: 'The request has expired.',
  413: 'The body is too large.',
  422: 'The decision does not fit the request, or its idempotency key was used for another one.',
  429: 'Too many calls, or too many streams: see `Retry-After`.',
  500: 'An internal error. The request may not have been decided.',
  503: 'The store is not available, or the server has no room for another stream: see `Retry-After`.',
} as const;

type Status = keyof typeof ERRORS;

/** Of every operation with a token. */
const ALWAYS: readonly Status[] = [401, 403, 405, 429, 500, 503];
const SENDING: readonly Status[] = [400, ...ALWAYS, 404, 408, 413];

const jsonOf = (schema: Schema): Schema => ({ 'application/json': { schema } });
const parameter = (name: string, schema: Schema, description: string, where = 'query'): Schema => ({
  name,
  in: where,
  description,
  schema,
  ...(where === 'path' && { required: true }),
});

const instant: Schema = { type: 'string', format: 'date-time' };
const limit = parameter('limit', { type: 'integer', minimum: 1, maximum: 1000, default: 100 }, 'how many, at most');
const cursor = parameter('cursor', text, 'the `cursor` of the page before it');
const requestId = parameter('requestId', text, 'the id of a request', 'path');
const delegationId = parameter('delegationId', text, 'the id of a delegation', 'path');
const standingId = parameter('standingId', text, 'the id of a standing rule', 'path');
const executionId = parameter('executionId', text, 'the id of an execution', 'path');

interface Operation {
  readonly id: string;
  readonly summary: string;
  readonly parameters?: readonly Schema[];
  readonly body?: Schema;
  /** By status. */
  readonly answers: Readonly<Record<number, readonly [description: string, content: Schema]>>;
  readonly errors: readonly Status[];
  /** Needs no token. */
  readonly isPublic?: true;
}

function operation({ id, summary, parameters, body, answers, errors, isPublic }: Operation): Schema {
  const failures = errors.map((status) => [status, { description: ERRORS[status], content: jsonOf(ref('ApiError')) }]);
  const results = Object.entries(answers).map(([status, [description, content]]) => [status, { description, content }]);
  return {
    operationId: id,
    summary,
    ...(parameters && { parameters }),
    ...(body && { requestBody: { required: true, content: jsonOf(body) } }),
    responses: Object.fromEntries([...results, ...failures]),
    ...(isPublic && { security: [] }),
  };
}

const login = open({ issuer: text, clientId: text }, { scopes: texts, algorithms: texts });
const details = jsonOf(object({ request: ref('ApprovalRequest') }));
const page: Properties = { records: list(ref('ApprovalRequest')) };
const pageOptional: Properties = { cursor: about(text, 'absent on the last page') };

const PATHS: Readonly<Record<string, Readonly<Record<string, Operation>>>> = {
  '/login': {
    get: {
      id: 'getLogin',
      summary: 'How people sign in for a token.',
      answers: { 200: ['With `approvals.oidc`: the provider.', jsonOf(object({}, { oidc: login }))] },
      errors: [405],
      isPublic: true,
    },
  },
  '/openapi.json': {
    get: {
      id: 'getOpenApi',
      summary: 'This description.',
      answers: { 200: ['OpenAPI 3.1.', jsonOf({ type: 'object' })] },
      errors: [405],
      isPublic: true,
    },
  },
  '/me': {
    get: {
      id: 'getMe',
      summary: 'Who you are, and which environment of which product the server decides for.',
      answers: {
        200: ['You.', jsonOf(object({ product: text, env: text, principal: ref('Principal') }, { expiresAt: moment }))],
      },
      errors: [400, ...ALWAYS],
    },
  },
  '/count': {
    get: {
      id: 'countWaiting',
      summary: 'How many requests wait, counted up to 1,000.',
      answers: {
        200: ['The number.', jsonOf(object({ waiting: count }, { atLeast: about(yes, 'there may be more') }))],
      },
      errors: [400, ...ALWAYS],
    },
  },
  '/approvals': {
    get: {
      id: 'listApprovals',
      summary: 'A page of requests; without a query, the oldest of those that wait. Sensitive parameters are masked.',
      parameters: [
        parameter('status', oneOf('waiting', 'approved', 'rejected', 'cancelled'), 'default `waiting`'),
        parameter('agentTag', text, 'only requests of this agent'),
        parameter('executionId', text, 'only requests of this execution; then of any status'),
        parameter('since', instant, 'only requests created at or after this moment; ISO 8601, UTC'),
        parameter('before', instant, 'only requests created before this moment; ISO 8601, UTC'),
        parameter('newestFirst', flag, 'default `false`'),
        limit,
        cursor,
      ],
      answers: { 200: ['A page.', jsonOf(object(page, pageOptional))] },
      errors: [400, ...ALWAYS],
    },
  },
  '/approvals/{requestId}': {
    get: {
      id: 'getApproval',
      summary: 'A request with its history. Sensitive parameters are masked.',
      parameters: [requestId],
      answers: { 200: ['The request.', details] },
      errors: [...ALWAYS, 404],
    },
  },
  '/approvals/{requestId}/reveal': {
    post: {
      id: 'revealApproval',
      summary: 'A request with its sensitive parameters. An event says who read them.',
      parameters: [requestId],
      body: object({}),
      answers: { 200: ['The whole request.', details] },
      errors: SENDING,
    },
  },
  '/approvals/{requestId}/decision': {
    post: {
      id: 'decideApproval',
      summary: 'Approves or rejects a request.',
      parameters: [
        requestId,
        parameter(
          'Idempotency-Key',
          { type: 'string', minLength: 1, maxLength: 255 },
          'printable ASCII: the same decision of the same person with the same key has an effect once',
          'header',
        ),
      ],
      body: ref('Decision'),
      answers: {
        200: ['The request is decided.', jsonOf(ref('DecisionResult'))],
        202: ['The vote is stored, and the request needs more.', jsonOf(ref('VoteResult'))],
      },
      errors: [...SENDING, 409, 410, 422],
    },
  },
  '/approvals/{requestId}/audit': {
    get: {
      id: 'getAudit',
      summary: 'The events and deliveries of a request, as the export of the audit has them.',
      parameters: [requestId],
      answers: { 200: ['All of them.', jsonOf(object({ entries: list(ref('AuditEntry')) }))] },
      errors: [400, ...ALWAYS, 404],
    },
  },
  '/executions/{executionId}': {
    get: {
      id: 'getExecution',
      summary: 'An execution, if an agent of svc runs it, and a page of its requests.',
      parameters: [executionId, limit, cursor],
      answers: {
        200: ['What is known of it.', jsonOf(object(page, { ...pageOptional, execution: ref('Execution') }))],
      },
      errors: [400, ...ALWAYS, 404],
    },
  },
  '/delegations': {
    get: {
      id: 'listDelegations',
      summary: 'In whose place you decide, and who decides in yours. Includes what has ended.',
      answers: { 200: ['All of them.', jsonOf(object({ delegations: list(ref('Delegation')) }))] },
      errors: [400, ...ALWAYS],
    },
    post: {
      id: 'delegate',
      summary:
        'Lets another person decide in your place. Needs a token of `svc people token create`, and ends with it.',
      body: object({ to: about(text, 'the id of the person'), until: moment }),
      answers: { 200: ['The delegation.', jsonOf(ref('Delegation'))] },
      errors: [400, ...ALWAYS, 408, 413],
    },
  },
  '/delegations/{delegationId}/revoke': {
    post: {
      id: 'revokeDelegation',
      summary: 'Ends a delegation of yours.',
      parameters: [delegationId],
      body: object({}),
      answers: { 200: ['The delegation.', jsonOf(ref('Delegation'))] },
      errors: SENDING,
    },
  },
  '/standing-rules': {
    get: {
      id: 'listStandingRules',
      summary: 'The standing rules, with how often each was used. Includes those that have ended.',
      answers: { 200: ['All of them.', jsonOf(object({ standingRules: list(ref('StandingRule')) }))] },
      errors: [400, ...ALWAYS],
    },
    post: {
      id: 'allow',
      summary: 'Lets later calls like an approved one run. Needs the role in `standing` of the rule of the request.',
      body: object(
        { requestId: about(text, 'of a request that was approved'), uses: count, until: moment },
        { atMost },
      ),
      answers: { 200: ['The standing rule.', jsonOf(ref('StandingRule'))] },
      errors: SENDING,
    },
  },
  '/standing-rules/{standingId}/revoke': {
    post: {
      id: 'revokeStandingRule',
      summary: 'Ends a standing rule that you have made, or that you may make.',
      parameters: [standingId],
      body: object({}),
      answers: { 200: ['The standing rule.', jsonOf(ref('StandingRule'))] },
      errors: SENDING,
    },
  },
  '/events': {
    get: {
      id: 'streamEvents',
      summary: 'Changes of requests as server-sent events, without an end. The `data` of each is described here.',
      parameters: [parameter('Last-Event-ID', text, 'the `id` of the last event that was received', 'header')],
      answers: { 200: ['The events.', { 'text/event-stream': { schema: ref('StreamEvent') } }] },
      errors: [400, ...ALWAYS],
    },
  },
};

/** The description of the HTTP API, in OpenAPI 3.1. */
export function openApi(): Schema {
  const paths = Object.entries(PATHS).map(([path, methods]) => [
    path,
    Object.fromEntries(Object.entries(methods).map(([method, one]) => [method, operation(one)])),
  ]);
  return {
    openapi: '3.1.0',
    info: {
      title: '@svc/sdk approvals',
      version,
      summary: 'Lists and decides requests for approval.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    // Relative to the address of this description.
    servers: [{ url: '../v1' }],
    security: [{ token: [] }],
    paths: withReferences(Object.fromEntries(paths)),
    webhooks: {
      approvalRequest: {
        post: {
          operationId: 'receiveApprovalRequest',
          summary: 'A request, as `approvals.webhook` sends it, signed by Standard Webhooks.',
          requestBody: { required: true, content: jsonOf(ref('WebhookDelivery')) },
          responses: { '2XX': { description: 'Delivered. Any other status is tried again.' } },
          security: [],
        },
      },
    },
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'A token of `svc people token create`, or an ID token.' },
      },
      schemas: components,
    },
  };
}
