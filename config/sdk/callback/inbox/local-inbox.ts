import { randomBytes } from 'node:crypto';
import { deciderOf, type SignalOptions } from '../../../../core/approval/decide.ts';
import { tokensEqual } from '../../../../core/approval/token.ts';
import type { Runtime } from '../../../load/runtime.ts';
import { openApprovals } from '../../approval-runtime.ts';
import { EventStreams } from '../api/event-streams.ts';
import { PageCookies } from '../cookies.ts';
import { errorResponse } from '../handler.ts';
import { PAGE_HEADERS } from '../layout.ts';
import { messagePage } from '../page.ts';
import { htmlResponse, redirectResponse } from '../response.ts';
import type { Door } from './door.ts';
import { inboxHandler, isInboxRoute } from './handler.ts';

interface LocalInbox {
  /** Lets in the first browser that opens it, and no other. */
  readonly url: string;
  readonly handler: (request: Request) => Promise<Response>;
}

interface LocalOptions {
  /** The address of the server. */
  readonly base: string;
  readonly decider: Pick<SignalOptions, 'actor' | 'token'>;
  /** Aborts when the server stops. */
  readonly stopping: AbortSignal;
}

const SESSION = 'inbox';
const SESSION_SECONDS = 12 * 3_600;

/** The inbox at a loopback address, for the person who runs the process. Throws `token_invalid` for their token. */
export async function openLocalInbox(runtime: Runtime, { base, decider, stopping }: LocalOptions): Promise<LocalInbox> {
  const { service, watcher, owner } = await openApprovals(runtime);
  const { principal } = await deciderOf(service, decider);
  const visitor = { principal, decider, canSignOut: false, isAllowed: async () => true };
  // Cookies are of a host, whatever the port.
  const cookies = new PageCookies(base, new URL(base).port);
  const session = randomSecret();
  let link: string | undefined = randomSecret();
  const url = `${base}/inbox?link=${link}`;
  const door: Door = {
    async enter(request) {
      if (tokensEqual(cookies.read(request, SESSION) ?? '', session)) return visitor;
      const given = new URL(request.url).searchParams.get('link') ?? '';
      if (link === undefined || !tokensEqual(given, link)) return htmlResponse(401, CLOSED, PAGE_HEADERS);
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
      if (!isInboxRoute(request)) return redirectResponse(`${base}/inbox`);
      return inbox(request).catch((error: unknown) => errorResponse(request, error));
    },
  };
}

const CLOSED = messagePage(
  'The inbox',
  'It opens with the link that the command has printed, in one browser. Run svc approvals inbox again for another link.',
);

const randomSecret = (): string => randomBytes(32).toString('base64url');
