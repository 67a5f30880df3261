import {
  createPrincipal,
  type Principal,
  principalProblems,
  type SignalPrincipal,
} from '../../core/approval/principal.ts';
import { problemText } from '../../core/validate-shape.ts';
import type { ProxyConfig } from '../define.ts';
import { loadProxyTokens } from '../load/builtin.ts';
import { onceSuccessful } from './once-successful.ts';

/** People whom the proxy of `approvals.proxy` has authenticated. */
export interface ProxyPeople {
  /** Throws `driver_missing` without the library that verifies the tokens. */
  open(): Promise<unknown>;
  /** The person whom a token names. Throws `token_invalid`, `driver_missing` and `connection_failed`. */
  verify(token: string): Promise<Principal>;
}

export function proxyPeople(config: ProxyConfig, root: string): ProxyPeople {
  const open = onceSuccessful(async () => {
    const { openProxyTokens, invalidProxyToken } = await loadProxyTokens();
    return { claimsOf: await openProxyTokens(config, root), invalid: invalidProxyToken };
  });
  return {
    open,
    async verify(token) {
      const { claimsOf, invalid } = await open();
      const person = personOf(await claimsOf(token), config);
      if (typeof person === 'string') throw invalid(person);
      return person;
    },
  };
}

/** The person whom the claims name, or why they name none. */
function personOf(
  claims: Readonly<Record<string, unknown>>,
  { id: idClaim = 'email', groups: groupsClaim }: ProxyConfig,
): Principal | string {
  if (idClaim === 'email' && claims.email_verified === false) return 'Its address is not verified.';
  const groups = groupsClaim === undefined ? [] : (claims[groupsClaim] ?? []);
  const person = { id: claims[idClaim], groups: typeof groups === 'string' ? [groups] : groups };
  const problems = principalProblems(person, []);
  if (problems.length > 0) return `Its claims are not a person: ${problems.map(problemText).join(' ')}`;
  return createPrincipal(person as SignalPrincipal, 'proxy');
}
