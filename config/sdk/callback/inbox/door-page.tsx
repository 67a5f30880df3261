import { displayText } from '../../../../core/display/text.ts';
import { PAGE_HEADERS, page } from '../layout.tsx';
import { signInUrl } from '../page.tsx';
import { type HttpError, htmlResponse, NOT_AVAILABLE, STORE_UNAVAILABLE } from '../response.ts';

interface DoorContext {
  /** Of the page that was asked for. */
  readonly url: string;
  readonly hasProvider: boolean;
  readonly message?: string | undefined;
}

const TRY_AGAIN = 'Reload this page in a moment.';
const SEND_AGAIN = 'Reload this page in a moment: the browser sends what you entered again.';
const TOKEN_COMMAND = 'svc people token create <id> --expires 90d';

/** How to sign in. */
export function doorPage(status: number, { url, hasProvider, message }: DoorContext): Response {
  const body = (
    <>
      {message !== undefined && (
        <p class="bad" role="alert">
          {displayText(message)}
        </p>
      )}
      {hasProvider && (
        <>
          <p class="buttons">
            <a href={signInUrl(url)} class="button first">
              Sign in
            </a>
          </p>
          <h2>With a token</h2>
        </>
      )}
      <form method="post" action={url}>
        <input type="hidden" name="action" value="sign-in" />
        <p>
          <label>
            Token <input type="password" name="token" autocomplete="current-password" required maxlength={8192} />
          </label>
        </p>
        <p class="muted">
          A token of <code>{TOKEN_COMMAND}</code>. It is kept in a cookie of this browser for twelve hours.
        </p>
        <div class="buttons">
          <button class={hasProvider ? undefined : 'first'}>Sign in with the token</button>
        </div>
      </form>
    </>
  );
  return htmlResponse(status, page('Sign in to the inbox', body), PAGE_HEADERS);
}

/** For a person who is known and has no access. `url`: of the page that was asked for. */
export function refusedPage({ status, message }: HttpError, url: string, canSignOut: boolean): Response {
  const body = (
    <>
      <p>{message}</p>
      {canSignOut ? (
        <form method="post" action={url}>
          <input type="hidden" name="action" value="sign-out" />
          <button>Sign out</button>
        </form>
      ) : (
        <p>
          <a href={url}>Back</a>
        </p>
      )}
    </>
  );
  return htmlResponse(status, page('No access', body), PAGE_HEADERS);
}

/** What went wrong, with a link to the list. `isSent`: it answers a form, which a reload sends again. */
export function errorPage(error: HttpError, inboxUrl: string, isSent: boolean): Response {
  const { status, message, headers } = error;
  const shown =
    error.error !== STORE_UNAVAILABLE ? message : isSent ? `${message} ${SEND_AGAIN}` : `${NOT_AVAILABLE} ${TRY_AGAIN}`;
  const body = (
    <>
      <p>{displayText(shown)}</p>
      <p>
        <a href={inboxUrl}>To the inbox</a>
      </p>
    </>
  );
  return htmlResponse(status, page('The inbox', body), { ...PAGE_HEADERS, ...headers });
}
