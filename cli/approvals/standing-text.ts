import type { StandingRule } from '../../core/approval/standing-rules.ts';
import { inlineJson } from '../../core/display/json.ts';
import { displayText } from '../../core/display/text.ts';
import { endText } from './end-text.ts';

/** A standing rule on one line. `now`: milliseconds since 1970. */
export function standingLine(standing: StandingRule, now: number): string {
  const { standingId, agentTag, tool, parameters, atMost, by, uses, used, until, revokedAt } = standing;
  const values = Object.entries(parameters).map(([name, value]) =>
    Object.hasOwn(atMost, name)
      ? `${displayText(name)}≤${String(atMost[name])}`
      : `${displayText(name)}=${inlineJson(value)}`,
  );
  return [
    standingId,
    `${displayText(agentTag)} → ${displayText(tool)}`,
    ...(values.length === 0 ? [] : [values.join(' ')]),
    `by ${displayText(by)}`,
    `used ${used} of ${uses}`,
    endText(until, revokedAt, now),
  ].join('  ');
}
