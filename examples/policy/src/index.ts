import { definePlugin, type Plugin, type ToolCallReview } from '@svc/sdk';

export interface AmountRule {
  /** The tag of the tool. */
  readonly tool: string;
  /** The parameter that holds the amount. */
  readonly parameter: string;
  /** From this amount on a human is asked. */
  readonly askFrom: number;
  /** From this amount on nobody can approve it. */
  readonly denyFrom: number;
  /** Full hours from 0 to 24, of that time zone, between which small amounts need nobody. */
  readonly attended: { readonly from: number; readonly to: number; readonly timeZone: string };
}

/** Denies a tool call, or asks for approval, by its amount and by the hour. `now` is there for tests. */
export function amountPolicy(rules: readonly AmountRule[], now: () => Date = () => new Date()): Plugin {
  return definePlugin({
    name: 'policy',
    apply(kernel) {
      kernel.hooks.beforeToolCall.tap('policy', (review) => {
        for (const rule of rules) if (rule.tool === review.call.tool) judge(review, rule, now());
      });
    },
  });
}

function judge(review: ToolCallReview, { parameter, askFrom, denyFrom, attended }: AmountRule, now: Date): void {
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
