import type { SignalOptions } from '../../../core/approval/decide.ts';
import type { Principal } from '../../../core/approval/principal.ts';
import { signInKey } from '../../../core/approval/token.ts';
import { describeError, isSvcError } from '../../../core/errors.ts';
import type { PendingSignIn } from '../../load/builtin.ts';
import type { OidcPeople } from '../oidc-people.ts';
import { PageCookies, seal, unseal } from './cookies.ts';
import { PAGE_HEADERS } from './layout.ts';
import { type Account, signInPage } from './page.ts';
import { type HttpError, htmlResponse, redirectResponse } from './response.ts';
import { callbackUrl } from './token.ts';

/*
 * A person signs in at the provider of `approvals.oidc` on the page of a request (authorization code with PKCE). Two cookies:
 * `sign-in`, sealed, has what the provider's answer is compared with and the page to return to; `session` is the ID token,
 * which is verified with every request. A form decides as the person whom its page has shown, or not at all.
 */

const RETURN_PATH = '/approvals/signed-in';
/** A person who stays at the provider for longer begins again. */
const SIGN_IN_MS = 600_000;
const PENDING = 'sign-in';
const SESSION = 'session';

const CROSS_SITE: HttpError = {
  status: 403,
  error: 'decision_refused',
  message: 'The form was not sent from this site. Nothing was decided.',
};
const NOT_BEGUN: HttpError = {
  status: 400,
  error: 'sign_in_failed',
  message:
    'The sign-in was not begun in this browser, or more than ten minutes ago. Open the page of the request again.',
};

/** A request, with the token that was presented for it. */
interface Place {
  readonly requestId: string;
  readonly token: string;
}

interface Pending extends PendingSignIn, Place {
  readonly until: number;
}

interface Visitor {
  readonly decider: SignalOptions;
  readonly account: Account;
}

/** `ended`: the cookie has a token that is not valid any more. */
type Session = 'none' | 'ended' | { readonly token: string; readonly person: Principal };

interface SignInOptions {
  readonly oidc: OidcPeople;
  readonly product: string;
  readonly env: string;
  /** `approvals.callbackBase`. */
  readonly base: string;
  /** `approvals.callbackKey`. */
  readonly key: string;
}

export class SignIn {
  readonly #oidc: OidcPeople;
  readonly #base: string;
  readonly #key: Buffer;
  readonly #cookies: PageCookies;

  constructor({ oidc, product, env, base, key }: SignInOptions) {
    this.#oidc = oidc;
    this.#base = base.replace(/\/+$/, '');
    this.#key = signInKey(key, { product, env });
    this.#cookies = new PageCookies(base, `${product}-${env}`);
  }

  /** Whether a browser comes back from the provider. */
  isReturn({ method, url }: Request): boolean {
    return method === 'GET' && new URL(url).pathname.endsWith(RETURN_PATH);
  }

  /** Sends the browser to the provider. Throws `connection_failed`. */
  async begin(place: Place): Promise<Response> {
    const { url, pending } = await (await this.#oidc.provider()).begin(this.#redirectUri);
    const kept: Pending = { ...pending, ...place, until: Date.now() + SIGN_IN_MS };
    const cookie = this.#cookies.set(PENDING, seal(this.#key, JSON.stringify(kept)), SIGN_IN_MS / 1_000);
    return redirectResponse(url, cookie);
  }

  /** Begins the session, and sends the browser to the page of the request. `throttle` throws for too many attempts. */
  async complete(request: Request, throttle: (requestId: string) => void): Promise<Response> {
    const pending = this.#pendingOf(request);
    if (!pending) throw NOT_BEGUN;
    throttle(pending.requestId);
    const removed = this.#cookies.remove(PENDING);
    try {
      const answer = `${this.#redirectUri}${new URL(request.url).search}`;
      const { idToken, expiresAt } = await (await this.#oidc.provider()).finish(answer, pending);
      await this.#oidc.verify(idToken);
      const session = this.#cookies.set(SESSION, idToken, (expiresAt.getTime() - Date.now()) / 1_000);
      if (session) return redirectResponse(this.#urlOf(pending), [...removed, ...session]);
      return this.#ask(pending, 'Your token is larger than a browser keeps: it has too many groups.', removed);
    } catch (error) {
      if (!isSvcError(error) || error.code === 'connection_failed') throw error;
      return this.#ask(pending, describeError(error), removed);
    }
  }

  /** Who is signed in, to be shown. Throws `connection_failed`. */
  async accountOf(request: Request, place: Place): Promise<Account> {
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
    place: Place,
    decider: SignalOptions,
  ): Promise<Visitor | Response> {
    const session = await this.#sessionOf(request);
    if (session !== 'none') this.#assertSameSite(request.headers);
    const action = fields.get('action');
    if (action === 'sign-out') return redirectResponse(this.#urlOf(place), this.#cookies.remove(SESSION));
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

  async #sessionOf(request: Request): Promise<Session> {
    const token = this.#cookies.read(request, SESSION);
    if (token === undefined) return 'none';
    try {
      return { token, person: await this.#oidc.verify(token) };
    } catch (error) {
      if (isSvcError(error) && error.code === 'token_invalid') return 'ended';
      throw error;
    }
  }

  #pendingOf(request: Request): Pending | undefined {
    const text = unseal(this.#key, this.#cookies.read(request, PENDING) ?? '');
    const pending = text === undefined ? undefined : (JSON.parse(text) as Pending);
    return pending && pending.until > Date.now() ? pending : undefined;
  }

  /** Without a referrer, browsers send `Origin: null`: only those that are too old for Sec-Fetch-Site need it. */
  #assertSameSite(headers: Headers): void {
    const site = headers.get('sec-fetch-site');
    const isSame =
      site === null ? headers.get('origin') === new URL(this.#base).origin : site.toLowerCase() === 'same-origin';
    if (!isSame) throw CROSS_SITE;
  }

  #ask(place: Place, message: string, cookies: readonly string[], person?: string): Response {
    const response = htmlResponse(401, signInPage(message, this.#account(place, person)), PAGE_HEADERS);
    for (const cookie of cookies) response.headers.append('set-cookie', cookie);
    return response;
  }

  #account(place: Place, person: string | undefined): Account {
    return { person, page: this.#urlOf(place) };
  }

  #urlOf({ requestId, token }: Place): string {
    return callbackUrl(this.#base, requestId, token);
  }

  get #redirectUri(): string {
    return `${this.#base}${RETURN_PATH}`;
  }
}
