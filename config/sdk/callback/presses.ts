import { isRetryable } from '../../../core/approval/backend.ts';
import { decide } from '../../../core/approval/decide.ts';
import { type Presses, pressHandler } from '../../../core/approval/presses.ts';
import type { ApprovalService } from '../../../core/approval/service.ts';
import type { Runtime } from '../../load/runtime.ts';
import { approvalDetails } from '../approval-details.ts';
import { notAllowed, throttle } from './http-errors.ts';
import { RateLimit } from './limits.ts';
import { type HttpError, internalError } from './response.ts';
import { withoutSlash } from './token.ts';

/*
 * Pressed buttons of the channels in `approvals.channels`, as their services send them:
 *
 *   POST {callbackBase}/channels/<name>
 */

const PATH = /\/channels\/([^/]+)\/?$/;

/** Of each channel, per minute: how many that its service may not have sent are read. */
const MAX_UNVERIFIED = 600;
/** What was not verified: it is too large, too slow or not signed. */
const UNVERIFIED = [401, 408, 413];

const NO_PRESSES: HttpError = {
  status: 404,
  error: 'name_unknown',
  message: 'No channel with this name receives pressed buttons.',
};

/** Where the service of a channel sends pressed buttons. */
export const pressUrl = (base: string, name: string): string => `${withoutSlash(base)}/channels/${name}`;

/** That of each channel in the configuration with `presses`; none without a `callbackBase`. */
export async function pressUrls(runtime: Runtime): Promise<readonly { readonly name: string; readonly url: string }[]> {
  const { callbackBase } = runtime.config.approvals ?? {};
  if (callbackBase === undefined) return [];
  return [...(await openPresses(runtime)).keys()].map((name) => ({ name, url: pressUrl(callbackBase, name) }));
}

/** The name of the channel in the URL of a pressed button. */
export const pressedChannel = ({ url }: Request): string | undefined => PATH.exec(new URL(url).pathname)?.[1];

/** The `presses` of the channels in the configuration. Throws for a channel that cannot be opened. */
export async function openPresses(runtime: Runtime): Promise<ReadonlyMap<string, Presses>> {
  const names = Object.keys(runtime.config.approvals?.channels ?? {});
  const opened = await Promise.all(names.map(async (name) => [name, await runtime.channel(name)] as const));
  return new Map(opened.flatMap(([name, { presses }]) => (presses ? [[name, presses]] : [])));
}

/** Answers pressed buttons. Throws an `HttpError`, or what `verify`, `show` or the store throws. */
export function pressesHandler(
  approvals: ApprovalService,
  channels: ReadonlyMap<string, Presses>,
): (request: Request) => Promise<Response> {
  const handlers = new Map([...channels].map(([name, presses]) => [name, handlerOf(approvals, name, presses)]));
  return async (request) => {
    const handle = handlers.get(pressedChannel(request) ?? '');
    if (!handle) throw NO_PRESSES;
    if (request.method !== 'POST') throw notAllowed('POST');
    return handle(request);
  };
}

function handlerOf(approvals: ApprovalService, name: string, presses: Presses) {
  const from = `channel:${name}`;
  const handle = pressHandler(presses, {
    name: `The channel ${name}`,
    decide: ({ button, requestId, actor }) =>
      decide(approvals, { signal: button, payload: { requestId } }, { actor, from }),
    get: (requestId) => approvalDetails(approvals, requestId),
  });
  const unverified = new RateLimit(MAX_UNVERIFIED);
  return async (request: Request) => {
    // Before the body is read, which may take long.
    throttle(unverified, name);
    try {
      const response = await handle(request);
      if (!UNVERIFIED.includes(response.status)) unverified.giveBack(name);
      return response;
    } catch (error) {
      throw isRetryable(error) ? error : internalError(error, `The channel ${name}`);
    }
  };
}
