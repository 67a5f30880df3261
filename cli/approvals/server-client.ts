import type { ApprovalDetails } from '../../config/sdk/approval-details.ts';
import type { SignalInput, SignalOptions, SignalResult } from '../../core/approval/decide.ts';
import type { ApprovalPage, ListQuery } from '../../core/approval/list-approvals.ts';
import type { Principal } from '../../core/approval/principal.ts';
import { isRequestId } from '../../core/approval/request.ts';
import { codes, type ErrorCode, errorMessage, SvcError } from '../../core/errors.ts';
import { isPlainObject, tryParseJson } from '../../core/json.ts';
import { addressProblem } from '../../core/url.ts';
import { version } from '../../core/version.ts';
import { readLogin } from '../people/logins.ts';
import type { RequestSource } from './decide.ts';

const TIMEOUT_MS = 30_000;

/** Whom a server knows the bearer of a token as. */
export interface ServerIdentity {
  readonly product: string;
  readonly env: string;
  readonly principal: Principal;
  /** ISO 8601, UTC. Absent if the server does not know it. */
  readonly expiresAt?: string;
}

/** Opens a server as the owner of SVC_TOKEN, or as who has logged in. Throws `usage`, `token_invalid` and `server_failed`. */
export async function openServer(address: string, signal: AbortSignal): Promise<RequestSource> {
  const server = serverUrl(address);
  const token = process.env.SVC_TOKEN ?? readLogin(server)?.token;
  if (token === undefined) {
    throw new SvcError('token_invalid', `Nobody is logged in to ${server}.`, {
      state: 'Nothing was changed.',
      next: [`svc login ${server}    stores your token`, 'Or set SVC_TOKEN to your token.'],
    });
  }
  const approvals = new ServerClient(server, token, signal);
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

/** The requests of a server: `svc approvals serve`, or a program with the handler. */
export class ServerClient {
  readonly #server: string;
  readonly #token: string;
  readonly #signal: AbortSignal;

  constructor(server: string, token: string, signal: AbortSignal) {
    this.#server = server;
    this.#token = token;
    this.#signal = signal;
  }

  async me(): Promise<ServerIdentity> {
    const found = await this.#send('GET', '/me');
    if (isIdentity(found)) return found;
    throw serverFailed(this.#server, 'Its answer is not that of a server for approvals.');
  }

  async list(query: ListQuery = {}): Promise<ApprovalPage> {
    const fields = new URLSearchParams();
    for (const [key, value] of Object.entries(query)) {
      if (value !== undefined) fields.set(key, value instanceof Date ? value.toISOString() : String(value));
    }
    return (await this.#send('GET', `/approvals?${fields}`)) as unknown as ApprovalPage;
  }

  async get(requestId: string, { reveal = false }: { readonly reveal?: boolean } = {}): Promise<ApprovalDetails> {
    const path = pathOf(requestId);
    const answer = await (reveal ? this.#send('POST', `${path}/reveal`, {}) : this.#send('GET', path));
    return answer.request as ApprovalDetails;
  }

  async signal<Name extends string>(
    { signal, payload }: SignalInput<Name>,
    { override, reviewToken }: SignalOptions = {},
  ): Promise<SignalResult> {
    const { requestId, reason, modifiedParams } = payload;
    const decision = { approved: signal === 'approve', reason, modifiedParams, override, reviewToken };
    return (await this.#send('POST', `${pathOf(requestId)}/decision`, decision)) as unknown as SignalResult;
  }

  async #send(method: 'GET' | 'POST', path: string, body?: object): Promise<Readonly<Record<string, unknown>>> {
    const unknownState = method === 'POST' ? 'The server may have done it.' : undefined;
    const response = await fetch(`${this.#server}/api/v1${path}`, {
      method,
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${this.#token}`,
        'user-agent': `svc/${version}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
      // The token is for this server only.
      redirect: 'manual',
      signal: AbortSignal.any([this.#signal, AbortSignal.timeout(TIMEOUT_MS)]),
    }).catch((error: unknown) => {
      throw this.#interrupted() ?? serverFailed(this.#server, causeOf(error), unknownState);
    });
    const text = await response.text().catch((error: unknown) => {
      throw this.#interrupted() ?? serverFailed(this.#server, causeOf(error), unknownState);
    });
    const answer = tryParseJson(text);
    if (response.ok && isPlainObject(answer)) return answer;
    throw this.#errorOf(response.status, isPlainObject(answer) ? answer : {}, unknownState);
  }

  #errorOf(status: number, answer: Readonly<Record<string, unknown>>, unknownState: string | undefined): SvcError {
    const { error, message, ...details } = answer;
    const code = isCode(error) && status < 500 ? error : undefined;
    if (code === undefined || typeof message !== 'string') {
      const why = typeof message === 'string' ? `${status}: ${message}` : whyOf(status);
      return serverFailed(this.#server, why, status < 500 ? undefined : unknownState);
    }
    return new SvcError(code, message, {
      state: 'Nothing was changed.',
      next: code === 'token_invalid' ? [`svc login ${this.#server}    stores another token`] : [],
      details,
    });
  }

  #interrupted(): SvcError | undefined {
    return this.#signal.aborted ? new SvcError('interrupted', 'The command was interrupted.') : undefined;
  }
}

function pathOf(requestId: string): string {
  if (isRequestId(requestId)) return `/approvals/${requestId}`;
  throw new SvcError('approval_unknown', 'No request has this id.', {
    next: ['svc approvals list    lists the waiting requests'],
    details: { requestId },
  });
}

function isIdentity(answer: object): answer is ServerIdentity {
  const { product, env, principal } = answer as Partial<ServerIdentity>;
  return typeof product === 'string' && typeof env === 'string' && typeof principal?.id === 'string';
}

const isCode = (value: unknown): value is ErrorCode => typeof value === 'string' && Object.hasOwn(codes, value);

function whyOf(status: number): string {
  if (status >= 300 && status < 400) return `It answers with ${status}: redirects are not followed.`;
  return status === 404
    ? 'It serves no approvals at this URL, or has no `approvals.server` in its configuration.'
    : `It answers with ${status}.`;
}

/** The message of fetch is only "fetch failed". */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return errorMessage(cause ?? error);
}

function serverFailed(server: string, why: string, state = 'Nothing was changed.'): SvcError {
  return new SvcError('server_failed', `The server ${server} gave no usable answer.`, { why, state });
}
