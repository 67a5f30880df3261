import { PROCESS_NAME } from './call.ts';
import { deciderOf, type SignalOptions } from './decide.ts';
import { isVerified, type Principal } from './principal.ts';
import { hasSensitiveParameters } from './public-view.ts';
import type { ApprovalEvent } from './request.ts';
import type { ApprovalService, RequestRow } from './service.ts';
import { withReveal } from './state.ts';

/** Who reads the sensitive parameters of a request; as for a decision. @experimental */
export type RevealOptions = Pick<SignalOptions, 'actor' | 'principal' | 'token' | 'from'>;

/**
 * Adds the event that a person reads sensitive parameters, before they do: once, until something else happens. Throws
 * `token_invalid` and store errors; then they must not be shown. Returns the row as it then is.
 */
export async function recordReveal(
  service: ApprovalService,
  row: RequestRow,
  options: RevealOptions,
): Promise<RequestRow> {
  const { by, principal } = await deciderOf(service, options);
  const { from = PROCESS_NAME } = options;
  for (let current: RequestRow | undefined = row; current; current = await service.read(row.record.requestId)) {
    const { record } = current;
    if (!hasSensitiveParameters(record.body) || hasJustRead(record.body.events, by, principal)) return current;
    const { written } = await service.write(
      current,
      withReveal(record, { by, principal, from }, await service.clock.now()),
    );
    if (written) return written;
  }
  return row;
}

function hasJustRead(events: readonly ApprovalEvent[], by: string, principal: Principal): boolean {
  const id = isVerified(principal) ? principal.id : undefined;
  const others = events.findLastIndex(({ type }) => type !== 'revealed');
  return events.slice(others + 1).some((event) => event.by === by && event.principal?.id === id);
}
