import type { Conversation } from '../../../core/agent/model.ts';

/** Ids of tool calls that are different within a conversation: some providers repeat theirs, or leave them empty. */
export class CallIds {
  readonly #taken: Set<string>;
  /** What a provider's ids of this turn became, in the order of the calls. */
  readonly given: string[] = [];

  constructor(conversation: Conversation) {
    this.#taken = new Set(conversation.turns.flatMap(({ calls }) => calls.map(({ id }) => id)));
  }

  own(id: string): string {
    let unique = id;
    for (let more = this.#taken.size; unique === '' || this.#taken.has(unique); more++) unique = `call_${more}`;
    this.#taken.add(unique);
    this.given.push(unique);
    return unique;
  }
}
