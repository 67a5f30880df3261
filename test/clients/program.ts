// What a program does with a client that was generated from openapi.json into the folder `generated` next to it:
// `program.mjs <server> <token>`. It prints what it found. The comments with `expect-error` are tests of the types.
import {
  type ApiError,
  countWaiting,
  decideApproval,
  getApproval,
  getAudit,
  getExecution,
  getLogin,
  getMe,
  listApprovals,
  revealApproval,
  type StreamEvent,
  streamEvents,
} from './generated';
import { createClient } from './generated/client';

const [server = '', token = ''] = process.argv.slice(2);
const client = createClient({ baseUrl: `${server}/api/v1`, auth: token });
const found: Record<string, unknown> = {};

/** The data of an answer. An answer that is no success has an error instead. */
function dataOf<T>({ data, error }: { readonly data?: T | undefined; readonly error?: ApiError | undefined }): T {
  if (data === undefined) throw new Error(`${error?.error}: ${error?.message}`);
  return data;
}

/** One of the kinds of events, and what only that kind has. */
function eventText(event: StreamEvent): string {
  switch (event.type) {
    case 'sync':
      return 'list them';
    case 'created':
      // @ts-expect-error: nobody has decided it
      event.decidedBy;
      return `${event.tool} waits until ${event.timeout}`;
    case 'voted':
      return `${event.missing.map(({ role, count }) => `${count} of ${role}`)} missing`;
    case 'decided':
      return `${event.status} by ${event.decidedBy}`;
    case 'expired':
      return `expired at ${event.decidedAt}`;
  }
}

const { principal, product } = dataOf(await getMe({ client }));
found.me = [product, principal.id, principal.verifiedBy];
found.login = dataOf(await getLogin({ client })).oidc?.issuer ?? 'none';
found.waiting = dataOf(await countWaiting({ client })).waiting;

const requests = [];
let cursor: string | undefined;
do {
  const query = { status: 'waiting', limit: 1, ...(cursor !== undefined && { cursor }) } as const;
  const page = dataOf(await listApprovals({ client, query }));
  requests.push(...page.records);
  cursor = page.cursor;
} while (cursor !== undefined);
// @ts-expect-error: no status of a request
listApprovals.bind(null, { client, query: { status: 'open' } });
const [request, other] = requests;
if (!request || !other) throw new Error('two requests were expected');
found.requests = requests.map(({ parameters }) => parameters);

const path = { requestId: request.requestId };
const stop = new AbortController();
const { stream } = await streamEvents({ client, signal: stop.signal });
const first = await stream.next();
found.first = !first.done && eventText(first.value);

const shown = dataOf(await getApproval({ client, path })).request;
found.masked = shown.parameters;
// @ts-expect-error: not a property of a request
shown.requestID;
const { reviewToken = '' } = dataOf(await revealApproval({ client, path, body: {} })).request;

const wrong = await decideApproval({
  client,
  path,
  body: { approved: true, modifiedParams: { amount: 'four' }, reviewToken },
});
const [problem] = wrong.error?.problems ?? [];
found.wrong = [wrong.response.status, wrong.error?.error, typeof problem === 'object' ? problem.parameter : problem];

const decision = {
  client,
  path,
  body: { approved: true, modifiedParams: { amount: 4 }, reviewToken },
  headers: { 'Idempotency-Key': 'one decision' },
};
found.decided = [];
for (let times = 0; times < 2; times++) {
  const result = dataOf(await decideApproval(decision));
  (found.decided as unknown[]).push(result.status === 'waiting' ? result.missing[0]?.role : result.status);
}
const late = await decideApproval({ client, path, body: { approved: false } });
found.late = [late.response.status, late.error?.error, late.error?.status];

found.events = [];
for await (const event of stream) {
  (found.events as unknown[]).push(eventText(event));
  if (event.type === 'decided') break;
}

const { entries } = dataOf(await getAudit({ client, path }));
found.audit = entries
  .filter(({ type }) => type === 'revealed' || type === 'approved')
  .map(({ type, by }) => [type, by]);
const { execution, records } = dataOf(await getExecution({ client, path: { executionId: request.executionId } }));
found.execution = [execution?.status ?? 'of no agent', records.map(({ status }) => status)];

const unknown = await getApproval({ client, path: { requestId: `${other.requestId.slice(0, -1)}z` } });
found.unknown = [unknown.response.status, unknown.error?.error];
const denied = await countWaiting({ client: createClient({ baseUrl: `${server}/api/v1`, auth: 'x' }) });
found.denied = [denied.response.status, denied.error?.error];

stop.abort();
process.stdout.write(JSON.stringify(found));
