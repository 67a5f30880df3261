import { ownToken } from '../../config/load/own-token.ts';
import { type ApprovalDetails, unknownRequestError } from '../../config/sdk/approval-details.ts';
import {
  isDecisionRefusal,
  type SignalInput,
  type SignalOptions,
  type SignalResult,
} from '../../core/approval/decide.ts';
import type { Delegation, NewDelegation } from '../../core/approval/delegations.ts';
import type { ApprovalPage, ListQuery } from '../../core/approval/list-approvals.ts';
import { isRequestId } from '../../core/approval/request.ts';
import type { NewStandingRule, StandingRule } from '../../core/approval/standing-rules.ts';
import { displayText } from '../../core/display/text.ts';
import { codes, type ErrorCode } from '../../core/error-codes.ts';
import { errorMessage, isSvcError, SvcError } from '../../core/errors.ts';
import { isPlainObject, tryParseJson } from '../../core/json.ts';
import { addressProblem } from '../../core/url.ts';
import { version } from '../../core/version.ts';
import { readLogin } from '../people/logins.ts';
import type { OidcLogin } from '../people/oidc-login.ts';
import {
  isDelegation,
  isDelegations,
  isDetails,
  isIdentity,
  isLogin,
  isPage,
  isResult,
  isStandingRule,
  isStandingRules,
  type ServerIdentity,
} from './server-answers.ts';

const TIMEOUT_MS = 30_000;
const UNCHANGED = 'Nothing was changed.';

/** The requests of a server, and what it says that it is. */
export interface ServerSource extends Pick<ServerIdentity, 'product' | 'env'> {
  readonly approvals: ServerClient;
}

/** Opens a server as the owner of SVC_TOKEN, or as who has logged in. Throws `usage`, `token_invalid` and `server_failed`. */
export async function openServer(address: string, signal: AbortSignal): Promise<ServerSource> {
  const server = serverUrl(address);
  const own = ownToken();
  const token = own ?? readLogin(server)?.token;
  if (token === undefined) {
    throw new SvcError('token_invalid', `Nobody is logged in to ${server}.`, {
      state: UNCHANGED,
      next: [`svc login ${server}    stores your token`, 'Or set SVC_TOKEN to your token.'],
    });
  }
  const retry =
    own === undefined
      ? `svc login ${server}    stores another token`
      : 'Correct SVC_TOKEN, or unset it to use the token of svc login.';
  const approvals = new ServerClient(server, token, signal, retry);
  const { product, env } = await approvals.me();
  return { approvals, product, env };
}

/** The URL of a server as logins name it. Throws `usage`. */
export function serverUrl(address: string): string {
  const why = addressProblem(address) ?? (/[?#]/.test(address) ? 'must not have a query or a fragment' : undefined);
  if (why) {
    throw new SvcError('usage', `The URL of the server ${why}.`, {
      next: ['It is approvals.callbackBase of its configuration, such as https://approvals.acme.example.'],
    });
  }
  return new URL(address).href.replace(/\/+$/, '');
}

type Answer = Readonly<Record<string, unknown>>;

/** The requests of a server: `svc approvals serve`, or a program with the handler. */
export class ServerClient {
  readonly #server: string;
  readonly #token: string | undefined;
  readonly #signal: AbortSignal;
  readonly #retry: string;

  /** `retry`: what to do about a token that is not valid. Throws `usage` for a text that no token is. */
  constructor(server: string, token: string | undefined, signal: AbortSignal, retry: string) {
    if (token !== undefined && !/^[\x21-\x7e]+$/.test(token)) {
      throw new SvcError('usage', 'The token is not one word of letters, digits and ASCII signs.', {
        state: UNCHANGED,
        next: [retry],
      });
    }
    this.#server = server;
    this.#token = token;
    this.#signal = signal;
    this.#retry = retry;
  }

  /** Where people sign in. Needs no token. */
  async signIn(): Promise<OidcLogin | undefined> {
    return (await this.#read('/login', isLogin)).oidc;
  }

  me(): Promise<ServerIdentity> {
    return this.#read('/me', isIdentity);
  }

  list(query: ListQuery = {}): Promise<ApprovalPage> {
    const fields = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) fields.set(key, value instanceof Date ? value.toISOString() : String(value));
    }
    return this.#read(`/approvals?${fields}`, isPage);
  }

  async get(requestId: string, { reveal = false }: { readonly reveal?: boolean } = {}): Promise<ApprovalDetails> {
    const path = pathOf(requestId);
    const { request } = await (reveal
      ? this.#send(`${path}/reveal`, {}, isDetails, 'The server may have recorded that you read it.')
      : this.#read(path, isDetails));
    return request;
  }

  signal<Name extends string>(
    { signal, payload }: SignalInput<Name>,
    { override, reviewToken }: SignalOptions = {},
  ): Promise<SignalResult> {
    const { requestId, reason, modifiedParams } = payload;
    const decision = { approved: signal === 'approve', reason, modifiedParams, override, reviewToken };
    const next = `svc approvals show ${requestId}    shows whether it was`;
    return this.#send(`${pathOf(requestId)}/decision`, decision, isResult, 'The decision may have been stored.', [
      next,
    ]);
  }

  delegate({ to, until }: NewDelegation): Promise<Delegation> {
    const next = 'svc people delegation list    shows whether it was';
    const body = { to, until: until.toISOString() };
    return this.#send('/delegations', body, isDelegation, 'It may have been delegated.', [next]);
  }

  async *delegations(): AsyncGenerator<Delegation> {
    yield* (await this.#read('/delegations', isDelegations)).delegations;
  }

  revokeDelegation(delegationId: string): Promise<Delegation> {
    const path = `/delegations/${encodeURIComponent(delegationId)}/revoke`;
    const next = 'svc people delegation list    shows whether it was';
    return this.#send(path, {}, isDelegation, 'The delegation may have ended.', [next]);
  }

  allow({ until, ...rule }: NewStandingRule): Promise<StandingRule> {
    const next = 'svc approvals standing list    shows whether it was';
    const body = { ...rule, until: until.toISOString() };
    return this.#send('/standing-rules', body, isStandingRule, 'The standing rule may have been stored.', [next]);
  }

  async *standingRules(): AsyncGenerator<StandingRule> {
    yield* (await this.#read('/standing-rules', isStandingRules)).standingRules;
  }

  revokeStandingRule(standingId: string): Promise<StandingRule> {
    const path = `/standing-rules/${encodeURIComponent(standingId)}/revoke`;
    const next = 'svc approvals standing list    shows whether it was';
    return this.#send(path, {}, isStandingRule, 'The standing rule may have ended.', [next]);
  }

  #read<T extends Answer>(path: string, isExpected: (answer: Answer) => answer is T): Promise<T> {
    return this.#exchange(path, { method: 'GET' }, isExpected, { state: UNCHANGED });
  }

  /** `state`: what the server may have done, if it does not say that it has not. */
  #send<T extends Answer>(
    path: string,
    body: object,
    isExpected: (answer: Answer) => answer is T,
    state: string,
    next: readonly string[] = [],
  ): Promise<T> {
    const headers = { 'content-type': 'application/json' };
    return this.#exchange(path, { method: 'POST', body: JSON.stringify(body), headers }, isExpected, { state, next });
  }

  async #exchange<T extends Answer>(
    path: string,
    {
      headers,
      ...init
    }: { readonly method: string; readonly body?: string; readonly headers?: Record<string, string> },
    isExpected: (answer: Answer) => answer is T,
    after: { readonly state: string; readonly next?: readonly string[] },
  ): Promise<T> {
    const fail = (why: string) => {
      if (this.#signal.aborted) return new SvcError('interrupted', 'The command was interrupted.', after);
      const check = 'Check the URL, and that svc approvals serve runs there with approvals.server.';
      const next = [...(after.next ?? []), check];
      return new SvcError('server_failed', `The server ${this.#server} gave no usable answer.`, {
        ...after,
        why,
        next,
      });
    };
    try {
      const response = await fetch(`${this.#server}/api/v1${path}`, {
        ...init,
        headers: {
          ...headers,
          accept: 'application/json',
          ...(this.#token !== undefined && { authorization: `Bearer ${this.#token}` }),
          'user-agent': `svc/${version}`,
        },
        // The token is for this server only.
        redirect: 'manual',
        signal: AbortSignal.any([this.#signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      const parsed = tryParseJson(await response.text());
      const answer = isPlainObject(parsed) ? parsed : {};
      if (response.ok && isExpected(answer)) return answer;
      throw (response.ok ? undefined : this.#refusal(answer)) ?? fail(whyOf(response, answer));
    } catch (error) {
      throw isSvcError(error) ? error : fail(causeOf(error));
    }
  }

  /** What the server has refused; undefined for anything else, also for an error that is not one of decisions. */
  #refusal({ error: code, message, ...details }: Answer): SvcError | undefined {
    if (!isCode(code) || typeof message !== 'string') return undefined;
    const next = code === 'token_invalid' ? [this.#retry] : [];
    const refusal = new SvcError(code, displayText(message), { state: UNCHANGED, next, details });
    if (code === 'access_refused') {
      return refusal.with({ next: [`Ask who runs ${this.#server} to add you to the role of approvals.server.`] });
    }
    if (code === 'delegation_unknown')
      return refusal.with({ next: ['svc people delegation list    lists the delegations'] });
    if (code === 'standing_unknown')
      return refusal.with({ next: ['svc approvals standing list    lists the standing rules'] });
    return code === 'value_invalid' || isDecisionRefusal(refusal) ? refusal : undefined;
  }
}

function pathOf(requestId: string): string {
  if (isRequestId(requestId)) return `/approvals/${requestId}`;
  throw unknownRequestError(requestId);
}

const isCode = (value: unknown): value is ErrorCode => typeof value === 'string' && Object.hasOwn(codes, value);

function whyOf({ status, headers }: Response, { message }: Answer): string {
  if (status >= 200 && status < 300) return 'Its answer is not that of a server for approvals.';
  if (status >= 300 && status < 400) return `It answers with ${status}: redirects are not followed.`;
  const after = headers.get('retry-after');
  const pause = after !== null && /^\d{1,6}$/.test(after) ? ` Try again in ${after} s.` : '';
  if (typeof message === 'string') return `${status}: ${displayText(message)}${pause}`;
  return status === 404
    ? 'It serves no approvals at this URL, or has no `approvals.server` in its configuration.'
    : `It answers with ${status}.${pause}`;
}

/** The message of fetch is only "fetch failed". */
function causeOf(error: unknown): string {
  return errorMessage((error instanceof Error ? error.cause : undefined) ?? error);
}
