import type { Notice } from '../../core/approval/channel.ts';
import type { Json } from '../../core/json.ts';

/** A notice for programs, added to the request. */
export function noticeJson({ kind, at, to, missing }: Notice): Json {
  return {
    kind,
    at,
    to: to.map(({ role, members }) => ({ role, members: [...members] })),
    missing: missing.map(({ role, count }) => ({ role, count })),
  };
}
