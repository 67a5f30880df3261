/** `1 migration`, `3 migrations` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

export function milliseconds(duration: number): string {
  return duration < 10_000 ? `${Math.round(duration)} ms` : `${(duration / 1000).toFixed(1)} s`;
}

/** `2026-11-20 10:30`, in UTC as the tags are. */
export function minute(at: Date): string {
  return at.toISOString().slice(0, 16).replace('T', ' ');
}
