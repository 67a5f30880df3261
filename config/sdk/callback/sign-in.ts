import type { SignalOptions } from '../../../core/approval/decide.ts';
import type { Principal } from '../../../core/approval/principal.ts';
import { signInKey } from '../../../core/approval/token.ts';
import { describeError, isSvcError } from '../../../core/errors.ts';
import type { PendingSignIn } from '../../load/builtin.ts';
import type { OidcPeople } from '../oidc-people.ts';
import { PageCookies, seal, unseal } from './cookies.ts';
import { assertSameSite, invalidDecision, NOT_FOUND } from './http-errors.ts';
import { PAGE_HEADERS } from './layout.tsx';
import { type Account, signInPage } from './page.tsx';
import { type HttpError, htmlResponse, redirectResponse } from './response.ts';

/*
 * A person signs in on a page: at the provider of `approvals.oidc` (authorization code with PKCE), or with a token of their
 * own. Two cookies, both sealed with a key of this server: `sign-in` has what the provider's answer is compared with and the
 * page to return to; `session` has the ID token or the token, which is verified with every request, and when the session ends.
 * A form decides as the person whom its page has shown, or not at all.
 */

const RETURN_PATH = '/approvals/signed-in';
/** A person who stays at the provider for longer begins again. */
const SIGN_IN_MS = 600_000;
const PENDING = 'sign-in';
const SESSION = 'session';
/** After that a person enters their token again, or signs in at the provider. */
export const SESSION_SECONDS = 12 * 3_600;

const NOT_BEGUN: HttpError = {
  status: 400,
  error: 'sign_in_failed',
  message: 'The sign-in was not begun in this browser, or more than ten minutes ago. Open the page again.',
};

interface Pending extends PendingSignIn {
  /** The path of the page below `approvals.callbackBase`, with its query. */
  readonly place: string;
  readonly until: number;
}

/** A session. */
interface Kept {
  readonly token: string;
  readonly until: number;
}

interface Visitor {
  readonly decider: SignalOptions;
  readonly account: Account;
}

/** `ended`: the cookie has a token that is not valid any more. */
type Session = 'none' | 'ended' | { readonly token: string; readonly person: Principal };

interface SignInOptions {
  /** Throws `token_invalid`. */
  readonly verify: (token: string) => Promise<Principal>;
  readonly oidc?: OidcPeople | undefined;
  readonly product: string;
  readonly env: string;
  /** `approvals.callbackBase`, without a slash at the end. */
  readonly base: string;
  /** `approvals.callbackKey`. */
  readonly key: string;
}

export class SignIn {
  readonly #verify: (token: string) => Promise<Principal>;
  readonly #oidc: OidcPeople | undefined;
  readonly #base: string;
  readonly #key: Buffer;
  readonly #cookies: PageCookies;

  constructor({ verify, oidc, product, env, base, key }: SignInOptions) {
    this.#verify = verify;
    this.#oidc = oidc;
    this.#base = base;
    this.#key = signInKey(key, { product, env });
    this.#cookies = new PageCookies(base, `${product}-${env}`);
  }

  /** Whether a browser comes back from the provider. */
  isReturn({ method, url }: Request): boolean {
    return method === 'GET' && new URL(url).pathname.endsWith(RETURN_PATH);
  }

  /** Whether there is a provider. */
  get hasProvider(): boolean {
    return this.#oidc !== undefined;
  }

  /** Sends the browser to the provider. Throws `connection_failed`, and an `HttpError` without a provider. */
  async begin(place: string): Promise<Response> {
    if (!this.#oidc) throw NOT_FOUND;
    const { url, pending } = await (await this.#oidc.provider()).begin(this.#redirectUri);
    const cookieFor = (kept: string) => {
      const begun: Pending = { ...pending, place: kept, until: Date.now() + SIGN_IN_MS };
      return this.#cookies.set(PENDING, seal(this.#key, PENDING, JSON.stringify(begun)), SIGN_IN_MS / 1_000);
    };
    // A filter may be longer than a cookie.
    return redirectResponse(url, cookieFor(place) ?? cookieFor(place.replace(/\?.*/s, '')));
  }

  /** Begins the session, and sends the browser back to the page. `throttle` throws for too many attempts. */
  async complete(request: Request, throttle: (pending: Pick<Pending, 'place' | 'state'>) => void): Promise<Response> {
    const pending = this.#kept<Pending>(request, PENDING);
    if (!pending || !this.#oidc) throw NOT_BEGUN;
    const { place } = pending;
    throttle(pending);
    const removed = this.#cookies.remove(PENDING);
    try {
      const answer = `${this.#redirectUri}${new URL(request.url).search}`;
      const { idToken, expiresAt } = await (await this.#oidc.provider()).finish(answer, pending);
      await this.#oidc.verify(idToken);
      const session = this.#sessionCookies(idToken, (expiresAt.getTime() - Date.now()) / 1_000);
      if (session) return redirectResponse(this.urlOf(place), [...removed, ...session]);
      return this.#ask(place, 'Your token is larger than a browser keeps: it has too many groups.', removed);
    } catch (error) {
      if (!isSvcError(error) || error.code === 'connection_failed') throw error;
      return this.#ask(place, describeError(error), removed);
    }
  }

  /** Begins a session with a token that was found to be valid. */
  start(token: string, place: string): Response {
    const session = this.#sessionCookies(token, SESSION_SECONDS);
    if (!session) throw invalidDecision('The token is too long.');
    return redirectResponse(this.urlOf(place), session);
  }

  end(place: string): Response {
    return redirectResponse(this.urlOf(place), this.#cookies.remove(SESSION));
  }

  /** Who is signed in, to be shown. Throws `connection_failed`. */
  async accountOf(request: Request, place: string): Promise<Account> {
    const session = await this.#sessionOf(request);
    return this.#account(place, typeof session === 'string' ? undefined : session.person.id);
  }

  /**
   * Who sends a form, or the response if it ends the session or must not be acted on. Throws `connection_failed` and an
   * `HttpError`.
   */
  async visitorOf(
    request: Request,
    fields: URLSearchParams,
    place: string,
    decider: SignalOptions,
  ): Promise<Visitor | Response> {
    const session = await this.#sessionOf(request);
    if (session !== 'none') assertSameSite(request, this.#base);
    const action = fields.get('action');
    if (action === 'sign-out') return this.end(place);
    if (session === 'ended') {
      return this.#ask(place, 'Your session has ended. Nothing was decided.', this.#cookies.remove(SESSION));
    }
    const person = session === 'none' ? undefined : session.person.id;
    if (action !== 'show' && (fields.get('person') ?? '') !== (person ?? '')) {
      const why = person === undefined ? 'You are not signed in any more.' : `You are signed in as ${person} now.`;
      return this.#ask(place, `${why} Nothing was decided: look at the request again.`, [], person);
    }
    return {
      decider: session === 'none' ? decider : { ...decider, token: session.token },
      account: this.#account(place, person),
    };
  }

  /** The token of a browser that was signed in, valid or not: that of a session which has ended is empty. */
  tokenOf(request: Request): string | undefined {
    if (this.#cookies.read(request, SESSION) === undefined) return undefined;
    return this.#kept<Kept>(request, SESSION)?.token ?? '';
  }

  #sessionCookies(token: string, seconds: number): string[] | undefined {
    const kept: Kept = { token, until: Date.now() + seconds * 1_000 };
    return this.#cookies.set(SESSION, seal(this.#key, SESSION, JSON.stringify(kept)), seconds);
  }

  /** What a cookie of this server has; undefined without it, or if it has ended. */
  #kept<T extends { readonly until: number }>(request: Request, name: string): T | undefined {
    const text = unseal(this.#key, name, this.#cookies.read(request, name) ?? '');
    const kept = text === undefined ? undefined : (JSON.parse(text) as T);
    return kept && kept.until > Date.now() ? kept : undefined;
  }

  /** The session of a browser. Throws `connection_failed`. */
  async #sessionOf(request: Request): Promise<Session> {
    const token = this.tokenOf(request);
    if (token === undefined) return 'none';
    try {
      return { token, person: await this.#verify(token) };
    } catch (error) {
      if (isSvcError(error) && error.code === 'token_invalid') return 'ended';
      throw error;
    }
  }

  #ask(place: string, message: string, cookies: readonly string[], person?: string): Response {
    const response = htmlResponse(401, signInPage(message, this.#account(place, person)), PAGE_HEADERS);
    for (const cookie of cookies) response.headers.append('set-cookie', cookie);
    return response;
  }

  #account(place: string, person: string | undefined): Account {
    return { person, page: this.urlOf(place) };
  }

  /** The URL of a page. */
  urlOf(place: string): string {
    return `${this.#base}${place}`;
  }

  get #redirectUri(): string {
    return `${this.#base}${RETURN_PATH}`;
  }
}
