import type { Kernel } from '../kernel.ts';
import { type ToolCall, ToolCallReview, type Verdict } from './review.ts';
import { frozen } from './view.ts';
import { keptWords } from './words.ts';

export interface Ruling {
  readonly verdict: Verdict;
  readonly reason: string | undefined;
}

const ALLOWED: Ruling = { verdict: 'allow', reason: undefined };

/** Puts a call before everybody who taps `beforeToolCall`. Whoever throws has denied. */
export async function rule({ beforeToolCall }: Kernel['hooks'], call: ToolCall): Promise<Ruling> {
  if (!beforeToolCall.isUsed()) return ALLOWED;
  const review = new ToolCallReview(frozen(call));
  try {
    await beforeToolCall.promise(review);
  } catch {
    // What was thrown may hold anything, and the model is told the reason.
    return { verdict: 'deny', reason: 'A policy failed while it looked at the call.' };
  }
  const { verdict, reason } = review;
  return { verdict, reason: reason === undefined ? undefined : keptWords(reason) };
}
