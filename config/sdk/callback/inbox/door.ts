import type { SignalOptions } from '../../../../core/approval/decide.ts';
import type { Principal } from '../../../../core/approval/principal.ts';
import { describeError, isSvcError } from '../../../../core/errors.ts';
import type { Callers } from '../api/authenticate.ts';
import { isHttpError } from '../http-errors.ts';
import type { SignIn } from '../sign-in.ts';
import { doorPage, refusedPage } from './door-page.tsx';

/** A person in the inbox. */
export interface Visitor {
  readonly principal: Principal;
  readonly decider: SignalOptions;
  /** False if somebody else has signed them in, such as a proxy. */
  readonly canSignOut: boolean;
  /** Whether they are still let in. */
  isAllowed(): Promise<boolean>;
}

/** Lets people into the inbox. */
export interface Door {
  /**
   * Who sends a request; or the response to one that is about signing in or out, or that is not let in. `place`: the path
   * below the URL of the server, with its query. `fields`: of a form. Throws `connection_failed` and an `HttpError`.
   */
  enter(request: Request, place: string, fields: URLSearchParams | undefined): Promise<Visitor | Response>;
}

/**
 * Lets in the people whom the API lets in: with the session of a browser, the header of a proxy or `Authorization: Bearer`, which
 * `tokenOf` reads.
 */
export function peopleDoor(callers: Callers, signIn: SignIn, tokenOf: (request: Request) => string | undefined): Door {
  const ask = (status: number, place: string, message?: string): Response =>
    doorPage(status, { url: signIn.urlOf(place), hasProvider: signIn.hasProvider, message });

  async function admit(
    request: Request,
    token: string,
    place: string,
    canSignOut: boolean,
  ): Promise<Visitor | Response> {
    try {
      const { principal } = await callers.authenticate(token, request);
      return { principal, decider: { token }, canSignOut, isAllowed: () => callers.isAllowed(token) };
    } catch (error) {
      if (isHttpError(error) && error.status === 403) return refusedPage(error, signIn.urlOf(place), canSignOut);
      if (!isSvcError(error) || error.code !== 'token_invalid') throw error;
      return ask(401, place, canSignOut ? 'Your session has ended. Nothing was decided.' : describeError(error));
    }
  }

  return {
    async enter(request, place, fields) {
      const action = fields?.get('action');
      if (action === 'sign-out') return signIn.end(place);
      if (action === 'sign-in') {
        const token = fields?.get('token')?.trim() ?? '';
        const visitor = await admit(request, token, place, false);
        return visitor instanceof Response ? visitor : signIn.start(token, place);
      }
      if (signIn.hasProvider && new URL(request.url).searchParams.has('sign-in')) return signIn.begin(place);
      const own = tokenOf(request);
      const token = own ?? signIn.tokenOf(request);
      return token === undefined ? ask(401, place) : admit(request, token, place, own === undefined);
    },
  };
}
