import {
  createPrincipal,
  type Principal,
  principalProblems,
  type SignalPrincipal,
  type Verification,
} from '../../core/approval/principal.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import { problemText } from '../../core/validate-shape.ts';

/** People whom somebody else has authenticated, and not a token of the store. */
export interface PeopleSource {
  /** Throws `driver_missing` without a library that it needs. */
  open(): Promise<unknown>;
  /**
   * The token with which a request says who decides; undefined if it says nothing. `peer`: the address that the request
   * comes from. Throws `token_invalid`.
   */
  tokenOf(headers: Headers, peer: string | undefined): string | undefined;
  /** The person whom a token names. Throws `token_invalid`, `driver_missing` and `connection_failed`. */
  verify(token: string): Promise<Principal>;
}

/** What follows `Bearer`, whatever it is: what is not a token must not count as none. Undefined for another authorization. */
export function bearerOf(headers: Headers): string | undefined {
  const [found, bearer = ''] = /^Bearer(?:\s+(.*))?$/i.exec(headers.get('authorization') ?? '') ?? [];
  return found === undefined ? undefined : bearer;
}

/** One source of several: a token is of the first that says so. */
export function firstOf([first, ...more]: readonly PeopleSource[]): PeopleSource | undefined {
  return first && more.reduce(either, first);
}

function either(one: PeopleSource, other: PeopleSource): PeopleSource {
  return {
    open: () => Promise.all([one.open(), other.open()]),
    tokenOf: (headers, peer) => one.tokenOf(headers, peer) ?? other.tokenOf(headers, peer),
    async verify(token) {
      try {
        return await one.verify(token);
      } catch (error) {
        return await other.verify(token).catch((second: unknown) => {
          // An outage says nothing about the token: it is the answer unless the token is of the other source.
          throw isInvalid(error) ? second : error;
        });
      }
    },
  };
}

function isInvalid(error: unknown): boolean {
  return isSvcError(error) && error.code === 'token_invalid';
}

/** The claims with the id and the groups of a person. */
interface ClaimNames {
  readonly id?: string | undefined;
  readonly groups?: string | undefined;
}

/** The person whom verified claims name. Throws `token_invalid`. */
export function personOfClaims(
  claims: Readonly<Record<string, unknown>>,
  { id = 'email', groups }: ClaimNames,
  verifiedBy: Verification,
): Principal {
  if (id === 'email' && claims.email_verified === false) throw invalidPerson('Its address is not verified.');
  const listed = groups === undefined ? [] : (claims[groups] ?? []);
  return personOf({ id: claims[id], groups: typeof listed === 'string' ? [listed] : listed }, verifiedBy);
}

/** Throws `token_invalid`. */
export function personOf(
  person: { readonly id: unknown; readonly groups: unknown },
  verifiedBy: Verification,
): Principal {
  const problems = principalProblems(person, []);
  if (problems.length > 0) throw invalidPerson(`It names no person: ${problems.map(problemText).join(' ')}`);
  return createPrincipal(person as SignalPrincipal, verifiedBy);
}

export function invalidPerson(why: string): SvcError {
  return new SvcError('token_invalid', 'What proves who decides is not valid.', { why, state: 'Nothing was decided.' });
}
