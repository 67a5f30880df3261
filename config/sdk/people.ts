import type { Delegation, Delegations, NewDelegation } from '../../core/approval/delegations.ts';
import type { NewToken, PersonToken, PersonTokens } from '../../core/approval/person-tokens.ts';
import type { SignalPrincipal } from '../../core/approval/principal.ts';
import { planApprovers } from '../load/plan-approval.ts';
import type { Runtime } from '../load/runtime.ts';
import { openApprovals } from './approval-runtime.ts';

/** The people who decide: the tokens that prove who they are, and who decides in whose place. @experimental */
export class People {
  readonly #runtime: () => Promise<Runtime>;

  constructor(runtime: () => Promise<Runtime>) {
    this.#runtime = runtime;
  }

  /**
   * Creates a token that is valid for `validForMs`. Its text is in this result only: the store has a hash of it. Throws
   * `value_invalid`, also for an id that begins with `agent:`, and `approver_required` for a person who may approve
   * migrations, without the token `by` of another.
   */
  async createToken(owner: SignalPrincipal, options: NewToken): Promise<PersonToken & { readonly token: string }> {
    const { config, env } = await this.#runtime();
    const tokens = await this.#tokens();
    const approvers = planApprovers(config, env);
    if (approvers) await tokens.keepApprovers(approvers, options.by);
    return tokens.create(owner, options);
  }

  /** Yields every token, without its text. */
  async *tokens(): AsyncGenerator<PersonToken> {
    yield* (await this.#tokens()).list();
  }

  /** Revokes a token: from then on it proves nothing. Decisions that were made with it stay. Throws `token_unknown`. */
  async revokeToken(tokenId: string): Promise<PersonToken> {
    return (await this.#tokens()).revoke(tokenId);
  }

  /**
   * Lets another person decide in the place of one, until a moment: by `token` the owner of the token, by `from` whom your
   * program vouches for. Throws `value_invalid` and `token_invalid`.
   */
  async delegate(delegation: NewDelegation): Promise<Delegation> {
    return (await this.#delegations()).create(delegation);
  }

  /** Yields every delegation, those that have ended too. */
  async *delegations(): AsyncGenerator<Delegation> {
    yield* (await this.#delegations()).list();
  }

  /** Ends a delegation. Votes that were given by it stay. Throws `delegation_unknown`. */
  async revokeDelegation(delegationId: string): Promise<Delegation> {
    return (await this.#delegations()).revoke(delegationId);
  }

  async #delegations(): Promise<Delegations> {
    return (await openApprovals(await this.#runtime())).service.delegations;
  }

  async #tokens(): Promise<PersonTokens> {
    return (await openApprovals(await this.#runtime())).service.personTokens;
  }
}
