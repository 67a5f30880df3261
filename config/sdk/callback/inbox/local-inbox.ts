import { randomBytes } from 'node:crypto';
import { deciderOf, type SignalOptions } from '../../../../core/approval/decide.ts';
import { tokensEqual } from '../../../../core/approval/token.ts';
import type { Runtime } from '../../../load/runtime.ts';
import { openApprovals } from '../../approval-runtime.ts';
import { EventStreams } from '../api/event-streams.ts';
import { PageCookies } from '../cookies.ts';
import { PAGE_HEADERS } from '../layout.tsx';
import { messagePage } from '../page.tsx';
import { htmlResponse, redirectResponse } from '../response.ts';
import { SESSION_SECONDS } from '../sign-in.ts';
import type { Door } from './door.ts';
import { inboxHandler, isInboxRoute } from './handler.ts';

interface LocalInbox {
  /** Lets in the first browser that opens it, and no other. */
  readonly url: string;
  readonly handler: (request: Request) => Promise<Response>;
}

interface LocalOptions {
  /** The address of the server. */
  readonly origin: string;
  readonly decider: Pick<SignalOptions, 'actor' | 'token'>;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

const SESSION = 'inbox';

/** The inbox at a loopback address, for the person who runs the process. Throws `token_invalid` for their token. */
export async function openLocalInbox(
  runtime: Runtime,
  { origin, decider, stopping }: LocalOptions,
): Promise<LocalInbox> {
  const { service, watcher, owner } = await openApprovals(runtime);
  const { principal } = await deciderOf(service, decider);
  const visitor = { principal, decider, canSignOut: false, isAllowed: async () => true };
  // Browsers send cookies to every port of a host: to those of this path only here.
  const path = `/${randomSecret()}`;
  const base = `${origin}${path}`;
  const cookies = new PageCookies(base, new URL(base).port);
  const session = randomSecret();
  let link: string | undefined = randomSecret();
  const url = `${base}/inbox?link=${link}`;
  const door: Door = {
    async enter(request) {
      const given = new URL(request.url).searchParams.get('link');
      if (tokensEqual(cookies.read(request, SESSION) ?? '', session)) {
        return given === null ? visitor : redirectResponse(`${base}/inbox`);
      }
      if (link === undefined || given === null || !tokensEqual(given, link) || request.method !== 'GET')
        return closed();
      link = undefined;
      return redirectResponse(`${base}/inbox`, cookies.set(SESSION, session, SESSION_SECONDS));
    },
  };
  const { product, env } = owner;
  const streams = new EventStreams({ approvals: service, watcher, stopping });
  const inbox = inboxHandler({ approvals: service, product, env, key: randomSecret(), base, streams }, door);
  return {
    url,
    async handler(request) {
      if (!new URL(request.url).pathname.startsWith(`${path}/`) || !isInboxRoute(request)) return closed();
      return inbox(request);
    },
  };
}

function closed(): Response {
  const message =
    'It opens with the link that the command has printed, in one browser. Run svc approvals inbox again for another link.';
  return htmlResponse(401, messagePage('The inbox', message), PAGE_HEADERS);
}

const randomSecret = (): string => randomBytes(32).toString('base64url');
