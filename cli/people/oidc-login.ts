import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadOidc, type SignedIn } from '../../config/load/builtin.ts';
import { tokensEqual } from '../../core/approval/token.ts';
import { describeError, isSvcError, SvcError } from '../../core/errors.ts';

const RETURN_PATH = '/signed-in';
const HOST = '127.0.0.1';
const TIMEOUT_MS = 300_000;

/** Where people sign in from the command line. */
export interface OidcLogin {
  readonly issuer: string;
  /** A public client, with the redirect URI `http://127.0.0.1/signed-in` at any port. */
  readonly clientId: string;
  readonly scopes?: readonly string[] | undefined;
  /** Default: RS256. */
  readonly algorithms?: readonly string[] | undefined;
}

interface Terminal {
  /** May fail: the URL is printed as well. */
  openBrowser(url: string): Promise<unknown>;
  print(line: string): void;
  readonly signal: AbortSignal;
  /** How long a person has; default five minutes. */
  readonly timeoutMs?: number;
}

/**
 * Signs a person in with the browser of this machine: authorization code with PKCE, to a loopback address (RFC 8252). Throws
 * `sign_in_failed`, also if nobody signs in in time, `interrupted` if the signal aborts, `driver_missing`,
 * `connection_failed` and `token_invalid`.
 */
export async function oidcLogin(
  settings: OidcLogin,
  { openBrowser, print, signal, timeoutMs = TIMEOUT_MS }: Terminal,
  root = process.cwd(),
): Promise<SignedIn> {
  const provider = await (await (await loadOidc()).openOidc(settings, root))();
  const server = createServer().listen(0, HOST);
  await once(server, 'listening');
  try {
    const address = `http://${HOST}:${(server.address() as AddressInfo).port}`;
    const { url, pending } = await provider.begin(`${address}${RETURN_PATH}`);
    const finish = (path: string) => provider.finish(`${address}${path}`, pending);
    const result = resultOf(server, pending.state, finish, AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]));
    print(`Sign in at ${url}`);
    void openBrowser(url).catch(() => print('The browser could not be opened: open that address yourself.'));
    return await result;
  } catch (error) {
    if (signal.aborted) throw new SvcError('interrupted', 'The sign-in was interrupted.', { cause: error });
    throw error;
  } finally {
    server.close();
    server.closeIdleConnections();
  }
}

/** What the first request with the state of this sign-in leads to. Others, of any page in the browser, are not answered. */
function resultOf(
  server: Server,
  state: string,
  finish: (path: string) => Promise<SignedIn>,
  signal: AbortSignal,
): Promise<SignedIn> {
  const result = new Promise<SignedIn>((resolve, reject) => {
    signal.addEventListener('abort', () => reject(tooLate()), { once: true });
    if (signal.aborted) reject(tooLate());
    let isFinished = false;
    server.on('request', ({ method, url: path = '/' }, response) => {
      const url = URL.canParse(path, `http://${HOST}`) ? new URL(path, `http://${HOST}`) : undefined;
      const isReturn = method === 'GET' && url?.pathname === RETURN_PATH;
      const isOwn = isReturn && tokensEqual(url.searchParams.get('state') ?? '', state);
      response.setHeader('connection', 'close').setHeader('content-type', 'text/plain; charset=utf-8');
      response.setHeader('cache-control', 'no-store').setHeader('referrer-policy', 'no-referrer');
      if (!isOwn || isFinished) {
        response.writeHead(404).end('Not found.\n');
        return;
      }
      isFinished = true;
      finish(path).then(
        (signedIn) => {
          response.once('close', () => resolve(signedIn)).end('You are signed in. You can close this window.\n');
        },
        (error: unknown) => {
          const text = isSvcError(error) ? describeError(error) : 'Nobody was signed in.';
          response
            .once('close', () => reject(error))
            .writeHead(400)
            .end(`${text}\n`);
        },
      );
    });
  });
  // The sign-in may end before anybody waits for it.
  result.catch(() => undefined);
  return result;
}

function tooLate(): SvcError {
  return new SvcError('sign_in_failed', 'Nobody was signed in.', {
    why: 'The browser did not come back in time.',
    next: ['Sign in again.'],
  });
}
