import { isRetryable } from '../../../core/approval/backend.ts';
import { decide } from '../../../core/approval/decide.ts';
import { type Presses, pressHandler } from '../../../core/approval/presses.ts';
import type { ApprovalService } from '../../../core/approval/service.ts';
import { errorMessage } from '../../../core/errors.ts';
import type { Runtime } from '../../load/runtime.ts';
import { approvalDetails } from '../approval-details.ts';
import { notAllowed } from './http-errors.ts';
import type { HttpError } from './response.ts';
import { withoutSlash } from './token.ts';

/*
 * Pressed buttons of the channels in `approvals.channels`, as their services send them:
 *
 *   POST {callbackBase}/channels/<name>
 */

const PATH = /\/channels\/([^/]+)\/?$/;

const NO_PRESSES: HttpError = {
  status: 404,
  error: 'name_unknown',
  message: 'No channel with this name receives pressed buttons.',
};

/** Where the service of a channel sends pressed buttons. */
export const pressUrl = (base: string, name: string): string => `${withoutSlash(base)}/channels/${name}`;

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
  return async (request: Request) => {
    try {
      return await handle(request);
    } catch (error) {
      // The response is a 500 without details.
      if (!isRetryable(error)) process.emitWarning(`The channel ${name}: ${errorMessage(error)}`, 'SvcWarning');
      throw error;
    }
  };
}
