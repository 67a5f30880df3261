import type { BlockingSession } from './dialect.ts';

/** `session 4711 (psql, idle in transaction, since 2026-11-23T10:00:00.000Z): SELECT …` */
export function describeSession({ id, user, application, state, since, query }: BlockingSession): string {
  const facts = [application ?? user, state, since === undefined ? undefined : `since ${since}`];
  const known = facts.filter((fact) => fact !== undefined).join(', ');
  return `session ${id}${known === '' ? '' : ` (${known})`}${query === undefined ? '' : `: ${query}`}`;
}
