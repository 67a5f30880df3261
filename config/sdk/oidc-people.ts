import type { OidcConfig } from '../define.ts';
import { loadOidc, type OidcProvider } from '../load/builtin.ts';
import { onceSuccessful } from './once-successful.ts';
import { bearerOf, type PeopleSource, personOfClaims } from './people-source.ts';

/** People who have signed in at the provider of `approvals.oidc`. */
export interface OidcPeople extends PeopleSource {
  /** Reads the metadata of the provider, once. Throws `driver_missing` and `connection_failed`. */
  provider(): Promise<OidcProvider>;
}

/** Where `svc login` signs people in; undefined without a public client. */
export function commandLineLogin({ issuer, clientId, clientSecret, cliClientId, scopes, algorithms }: OidcConfig) {
  const client = cliClientId ?? (clientSecret === undefined ? clientId : undefined);
  return client === undefined ? undefined : { issuer, clientId: client, scopes, algorithms };
}

export function oidcPeople(config: OidcConfig, root: string): OidcPeople {
  const { cliClientId, audience = [] } = config;
  const clients = [
    ...(cliClientId === undefined ? [] : [cliClientId]),
    ...(typeof audience === 'string' ? [audience] : audience),
  ];
  // Apart from the metadata: a provider that is down must not keep the callback from starting.
  const open = onceSuccessful(async () => (await loadOidc()).openOidc({ ...config, audience: clients }, root));
  const provider = onceSuccessful(async () => (await open())());
  return {
    open,
    provider,
    tokenOf: (headers) => bearerOf(headers),
    verify: async (token) => personOfClaims(await (await provider()).verify(token), config, 'oidc'),
  };
}
