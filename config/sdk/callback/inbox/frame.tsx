import type { Child } from 'hono/jsx';
import { displayText } from '../../../../core/display/text.ts';
import type { Visitor } from './door.ts';

/** What all pages of the inbox have in common. */
export interface InboxFrame {
  readonly product: string;
  readonly env: string;
  readonly visitor: Visitor;
  /** The URL of the list. */
  readonly inboxUrl: string;
}

/** Where this is, and who is signed in. */
export function inboxBar({ product, env, visitor, inboxUrl }: InboxFrame): Child {
  const who = `Signed in as ${displayText(visitor.principal.id)}`;
  return (
    <>
      <p>
        <a href={inboxUrl}>Inbox</a> &middot; {displayText(product)} &middot; <strong>{displayText(env)}</strong>
      </p>
      {visitor.canSignOut ? (
        <form method="post" action={inboxUrl}>
          <input type="hidden" name="action" value="sign-out" />
          <p>
            {who}. <button>Sign out</button>
          </p>
        </form>
      ) : (
        <p>{who}</p>
      )}
    </>
  );
}
