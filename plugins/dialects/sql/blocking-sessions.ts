import { describeSession } from '../../../core/blocking-session.ts';
import type { BlockingSession } from '../../../core/dialect.ts';
import { isSvcError, type SvcError } from '../../../core/errors.ts';
import type { Result } from './session.ts';

/** Beyond this, a statement of another session is cut. */
export const MAX_QUERY = 300;
const MAX_LISTED = 3;

/** Every word of a statement that may be the name of a table. */
export function namesIn(text: string): string[] {
  const quoted = [...text.matchAll(/"((?:[^"]|"")+)"|`((?:[^`]|``)+)`/g)].map(
    ([, double, back]) => double?.replaceAll('""', '"') ?? back?.replaceAll('``', '`') ?? '',
  );
  return [...new Set([...quoted, ...(text.match(/[\p{L}_][\p{L}\p{N}_$]*/gu) ?? [])])];
}

/** Rows with `t`, `pid`, `user`, `application`, `state`, `seconds` and `query`, one for each session: the first of it. */
export function toBlockingSessions(rows: Result['rows']): BlockingSession[] {
  const text = (value: unknown) => (value === null || value === undefined || value === '' ? undefined : String(value));
  const found = new Map<string, BlockingSession>();
  for (const row of rows) {
    const id = String(row.pid);
    if (found.has(id)) continue;
    const [user, application, state, query] = [row.user, row.application, row.state, row.query].map(text);
    const seconds = row.seconds === null || row.seconds === undefined ? undefined : Number(row.seconds);
    found.set(id, {
      table: String(row.t),
      id,
      ...(user !== undefined && { user }),
      ...(application !== undefined && { application }),
      ...(state !== undefined && { state }),
      ...(seconds !== undefined && { since: new Date(Date.now() - seconds * 1000).toISOString() }),
      ...(query !== undefined && { query: query.replace(/\s+/g, ' ').trim() }),
    });
  }
  return [...found.values()];
}

/** The error of a lock time-out with the sessions that hold a lock on its table. */
export function withBlockingSessions(error: unknown, sessions: readonly BlockingSession[], stop: string): unknown {
  const [first] = sessions;
  if (!isSvcError(error) || !first) return error;
  const tables = [...new Set(sessions.map(({ table }) => `"${table}"`))].join(', ');
  const listed = sessions.slice(0, MAX_LISTED).map(describeSession);
  const more = sessions.length > MAX_LISTED ? `; and ${sessions.length - MAX_LISTED} more` : '';
  const named: SvcError = error.with({
    why: `${error.why ?? error.message} ${tables} is locked by ${listed.join('; ')}${more}.`,
    next: ['Run the command again when the session has ended.', `Or end it: ${stop.replace('?', first.id)}`],
    details: { table: first.table, blockedBy: sessions },
  });
  return named;
}
