/** When something of a person ends, or has ended. `now`: milliseconds since 1970. */
export function endText(until: string, revokedAt: string | undefined, now: number): string {
  if (revokedAt !== undefined) return `revoked ${revokedAt}`;
  return `${Date.parse(until) <= now ? 'ended' : 'until'} ${until}`;
}
