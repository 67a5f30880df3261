import { definePlugin, type Plugin, type ToolCallReview } from '@svc/sdk';

export interface AmountRule {
  /** The tag of the tool. */
  readonly tool: string;
  /** The parameter with the amount. */
  readonly parameter: string;
  /** From this amount on, a call requires approval. */
  readonly askFrom: number;
  /** From this amount on, a call is denied. */
  readonly denyFrom: number;
  /** Full hours, 0 to 24, in a time zone. Between them, smaller amounts need no approval. */
  readonly attended: { readonly from: number; readonly to: number; readonly timeZone: string };
}

/** Denies a tool call, or requires approval for it, by amount and hour. `now` is for tests. */
export function amountPolicy(rules: readonly AmountRule[], now: () => Date = () => new Date()): Plugin {
  return definePlugin({
    name: 'policy',
    apply(kernel) {
      kernel.hooks.beforeToolCall.tap('policy', (review) => {
        for (const rule of rules) if (rule.tool === review.call.tool) applyRule(review, rule, now());
      });
    },
  });
}

function applyRule(review: ToolCallReview, { parameter, askFrom, denyFrom, attended }: AmountRule, now: Date): void {
  const amount = review.call.parameters[parameter];
  const hour = hourIn(attended.timeZone, now);
  if (typeof amount !== 'number') review.deny(`"${parameter}" is not a number.`);
  else if (amount >= denyFrom) review.deny(`${amount} is over the limit of ${denyFrom}.`);
  else if (amount >= askFrom) review.requireApproval(`${amount} is ${askFrom} or more.`);
  else if (hour < attended.from || hour >= attended.to) {
    review.requireApproval(`It is ${hour} o'clock: nobody is watching.`);
  }
}

function hourIn(timeZone: string, now: Date): number {
  return Number(new Intl.DateTimeFormat('en', { timeZone, hour: 'numeric', hourCycle: 'h23' }).format(now));
}
