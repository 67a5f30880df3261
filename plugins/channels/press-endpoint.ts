import { parseDecision } from '../../core/approval/parse-decision.ts';
import { type Presses, pressHandler } from '../../core/approval/presses.ts';
import type { ApprovalRecord, ApprovalStatus } from '../../core/approval/request.ts';

/** The part of `Svc` that an endpoint needs. */
export interface DecidingClient {
  readonly agents: {
    signal(
      signal: { readonly signal: 'approve' | 'reject'; readonly payload: { readonly requestId: string } },
      options: { readonly actor: string },
    ): Promise<{ readonly status: ApprovalStatus }>;
  };
  /** `get` without options: sensitive parameters are masked. */
  readonly approvals: { get(requestId: string): Promise<ApprovalRecord> };
}

/** @experimental */
export interface PressEndpoint extends Presses {
  readonly svc: DecidingClient;
}

/**
 * The handler of the requests that a service sends for pressed buttons, with web-standard requests, for a program that does
 * not serve the `presses` of a channel with `svc.approvals.handler()`. It answers 401 to a request that is not verified, 400
 * to one that `read` rejects, 408 to one whose body takes longer than 10 seconds, and 413 to one of more than 1 MiB. The first
 * decision is final: a later press shows it. An error of `read` that is not about the body is answered with 500 and emitted
 * as an `SvcWarning`; one of `verify` or `show` is thrown. @experimental
 */
export function pressEndpoint(endpoint: PressEndpoint): (request: Request) => Promise<Response> {
  const { agents, approvals } = endpoint.svc;
  return pressHandler(endpoint, {
    name: 'pressEndpoint',
    decide: ({ button, requestId, actor }) => agents.signal({ signal: button, payload: { requestId } }, { actor }),
    get: (requestId) => approvals.get(requestId),
  });
}

/**
 * The JSON in a form (`application/x-www-form-urlencoded`) whose only field is `name`, as Slack sends it. Throws what
 * `parseDecision` throws, and for a body that is anything else. @experimental
 */
export function parseFormDecision(body: Uint8Array, name: string): unknown {
  const text = Buffer.from(body).toString('latin1');
  const value = text.startsWith(`${name}=`) && !text.includes('&') ? text.slice(name.length + 1) : '';
  // Throws for bytes that are not UTF-8.
  return parseDecision(decodeURIComponent(value.replaceAll('+', ' ')));
}
