import { randomBytes } from 'node:crypto';
import { missingApprovals } from '../../core/approval/apply-decision.ts';
import type { ApprovalStatus, RejectionCause } from '../../core/approval/request.ts';
import type { RoleCount } from '../../core/approval/rule.ts';
import type { ApprovalRow } from '../../core/approval/schema.ts';

export type ChangeType = 'created' | 'voted' | 'decided' | 'expired';

/** A change of a request, without its parameters. */
export interface ApprovalChange {
  readonly type: ChangeType;
  readonly requestId: string;
  readonly executionId: string;
  readonly agentTag: string;
  readonly tool: string;
  readonly status: ApprovalStatus;
  /** ISO 8601, UTC. */
  readonly timestamp: string;
  /** ISO 8601, UTC: when the request expires. */
  readonly timeout: string;
  /** With a rule, while the request waits: the approvals that it lacks. */
  readonly missing?: readonly RoleCount[];
  readonly cause?: RejectionCause;
  readonly decidedAt?: string;
  readonly decidedBy?: string;
}

/** A change with the id that names its place in the order of changes. */
export interface NumberedChange {
  readonly id: string;
  readonly change: ApprovalChange;
}

export function changeOf(type: ChangeType, row: ApprovalRow): ApprovalChange {
  const { requestId, executionId, agentTag, status, expiresAt, body } = row;
  const { tool, timestamp } = body;
  const about = { type, requestId, executionId, agentTag, tool, timestamp, timeout: expiresAt.toISOString() };
  if (type === 'created') return { ...about, status: 'waiting' };
  const missing = missingApprovals(row);
  const { decision } = body;
  return {
    ...about,
    status,
    ...(missing && { missing }),
    ...(decision?.cause !== undefined && { cause: decision.cause }),
    ...(decision && { decidedAt: decision.at, decidedBy: decision.by }),
  };
}

/** The last changes, for those who were away for a moment. Ids are those of this object, and of no other one. */
export class ChangeLog {
  readonly #max: number;
  readonly #origin = randomBytes(8).toString('hex');
  #count = 0;
  #changes: NumberedChange[] = [];

  /** Keeps at least `max` changes. */
  constructor(max: number) {
    this.#max = max;
  }

  /** The id of the last change, or of the beginning. */
  get lastId(): string {
    return `${this.#origin}.${this.#count}`;
  }

  add(change: ApprovalChange): NumberedChange {
    this.#count += 1;
    const numbered = { id: this.lastId, change };
    this.#changes.push(numbered);
    if (this.#changes.length >= 2 * this.#max) this.#changes = this.#changes.slice(-this.#max);
    return numbered;
  }

  /** Undefined if the id is not of this log, or if changes after it are no longer here. */
  since(id: string): readonly NumberedChange[] | undefined {
    const [, origin, number = ''] = /^([0-9a-f]{16})\.(0|[1-9]\d{0,14})$/.exec(id) ?? [];
    const missed = this.#count - Number(number);
    if (origin !== this.#origin || missed < 0 || missed > this.#changes.length) return undefined;
    return missed === 0 ? [] : this.#changes.slice(-missed);
  }
}
