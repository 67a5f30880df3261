import type { OidcConfig } from '../define.ts';
import { loadOidc, type OidcProvider } from '../load/builtin.ts';
import { onceSuccessful } from './once-successful.ts';
import { type PeopleSource, personOfClaims } from './people-source.ts';

/** People who have signed in at the provider of `approvals.oidc`. */
export interface OidcPeople extends PeopleSource {
  /** Reads the metadata of the provider, once. Throws `driver_missing` and `connection_failed`. */
  provider(): Promise<OidcProvider>;
}

export function oidcPeople(config: OidcConfig, root: string): OidcPeople {
  // Apart from the metadata: a provider that is down must not keep the callback from starting.
  const open = onceSuccessful(async () => (await loadOidc()).openOidc(config, root));
  const provider = onceSuccessful(async () => (await open())());
  return {
    open,
    provider,
    tokenOf: (headers) => bearerOf(headers),
    verify: async (token) => personOfClaims(await (await provider()).verify(token), config, 'oidc'),
  };
}

/** What follows `Bearer`, whatever it is: what is not a token must not count as none. */
function bearerOf(headers: Headers): string | undefined {
  const [found, bearer = ''] = /^Bearer(?:\s+(.*))?$/i.exec(headers.get('authorization') ?? '') ?? [];
  return found === undefined ? undefined : bearer;
}
