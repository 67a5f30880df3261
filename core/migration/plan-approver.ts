/*
 * What a plan needs of those who review it. An environment with `approval` has an approver (config/sdk/plan-approver.ts),
 * plugins tap `migration:plan`.
 */

import type { Connection } from '../dialect.ts';
import { isPlainObject } from '../json.ts';
import type { Migration } from './migration.ts';

/** The tool and the agent of the requests that ask whether a plan may run. */
export const MIGRATION_TOOL = 'svc_db_migrate';
export const MIGRATION_AGENT = 'svc';

export const isPlanRequest = ({ agentTag, tool }: { readonly agentTag: string; readonly tool: string }): boolean =>
  agentTag === MIGRATION_AGENT && tool === MIGRATION_TOOL;

/** The command that runs a plan; undefined if a program does. */
export function commandOfPlan({
  action,
  migrations,
  keepHours,
}: Readonly<Partial<Record<'action' | 'migrations' | 'keepHours', unknown>>>): string | undefined {
  if (action === 'purge' || action === 'rollback') return `svc db migrate ${action}`;
  // Another time to keep makes another plan.
  const kept = (command: string) => (Number.isInteger(keepHours) ? `${command} --keep ${keepHours}h` : command);
  if (action === 'migrate') return kept('svc db migrate');
  if (action === 'contract') return kept('svc db migrate contract');
  const [, decision] = /^resolve (--\S+)$/.exec(String(action)) ?? [];
  if (decision === undefined) return undefined;
  const [one]: readonly unknown[] = Array.isArray(migrations) ? migrations : [];
  const tag = isPlainObject(one) && typeof one.tag === 'string' ? one.tag : '<tag>';
  return `svc db migrate resolve ${tag} ${decision}`;
}

export const APPROVAL_CONDITIONS = ['destructive', 'lossy', 'always'] as const;
export type ApprovalCondition = (typeof APPROVAL_CONDITIONS)[number];

/** Asks people, in an environment whose configuration says so. */
export interface PlanApprover {
  readonly when: ApprovalCondition;
  /** The id of the store of the requests. Throws `approver_required` if it remembers other approvers. */
  store(): Promise<string>;
  /** Who asks, and what the linter finds in the migrations of the plan. */
  describe(connection: Pick<Connection, 'count'>, migrations: AddedMigrations): Promise<RequestContext>;
  /**
   * How long a request of somebody else keeps what these migrations drop, in milliseconds: one that is approved, or waits.
   * Undefined if none keeps anything.
   */
  requestedKeep(tags: readonly string[]): Promise<number | undefined>;
  /**
   * Finds the decision of a plan, or requests one, and ends the requests that it replaces. Throws `approval_pending` without
   * one within the time, `approval_rejected`, and `approval_stale` if the request is withdrawn.
   */
  ask(request: PlanRequest, options: AskOptions): Promise<string>;
  /** Ends a request whose plan is another one by now, if it has not run. */
  withdraw(requestId: string, reason: string): Promise<void>;
  /** After a run: ends the requests that were made with another history. */
  withdrawStale(readHistory: PlanRequest['readHistory']): Promise<void>;
  /**
   * Runs `work` as the call that was approved, so that its record shows how it ended. Throws `approval_stale` if the request
   * is no longer approved, unless `isContinued`: then a part of the plan has run.
   */
  use<T>(approval: RunApproval, work: () => Promise<T>, isContinued: boolean): Promise<T>;
  close(): Promise<void>;
}

export interface PlanRequest {
  readonly plan: PlanDescription;
  /** In one line, for lists. */
  readonly reason: string;
  /** The digest of the history as it is now. */
  readHistory(): Promise<string>;
}

export interface RequestContext {
  readonly requestedBy: string;
  readonly commit?: string;
  readonly warnings: readonly string[];
}

/** Migrations that a plan applies, and those before them. */
export interface AddedMigrations {
  readonly before: readonly Migration[];
  readonly added: readonly Migration[];
}

export interface AskOptions {
  /** Milliseconds to wait for the decision; default 0. */
  readonly waitMs?: number;
  /** Asks about every plan, whatever `when` is. */
  readonly isRequired?: boolean;
  /** Requests another decision about a plan that was rejected. */
  readonly askAgain?: boolean;
  /**
   * Nobody asks: a process applies what is deployed. It keeps what a request about the same migrations keeps, for as long,
   * and does not request its plan in place of one that somebody has requested since.
   */
  readonly asRunner?: boolean;
  /** Counts every row that is lost, however long it takes. */
  readonly countsAll?: boolean;
  readonly signal?: AbortSignal | undefined;
  /** Called once if the decision has to be waited for. */
  readonly onWaiting?: (request: WaitingRequest) => void;
}

/** A request that people have to decide. */
export interface WaitingRequest {
  readonly requestId: string;
  readonly expiresAt: string;
  /** Its page, where people decide in an inbox. */
  readonly url?: string;
}

/** What a plan changes. */
export interface ShownPlan {
  readonly environment: string;
  readonly database: string;
  /** `migrate`, `contract`, `rollback`, `purge`, `resolve --retry`, `up`, `down`, or an operation of `db.schema`. */
  readonly action: string;
  readonly migrations: readonly ShownMigration[];
  /** How long what is dropped is kept. Absent if nothing is. */
  readonly keepHours?: number;
}

/** A plan before it runs, for the taps of `migration:plan`. The strictest verdict counts, in any order of the taps. */
export interface PlanReview {
  readonly plan: ShownPlan & {
    /** What is lost, in words, with the number of rows. */
    readonly losses: readonly string[];
  };
  readonly denial: string | undefined;
  readonly needsApproval: boolean;
  /** The plan does not run. */
  deny(reason: string): void;
  /** The plan waits for people, as `approval` of the environment says, whatever its `when` is. */
  requireApproval(): void;
}

export class OpenPlanReview implements PlanReview {
  readonly plan: PlanReview['plan'];
  #denial: string | undefined;
  #needsApproval = false;

  constructor(plan: PlanReview['plan']) {
    this.plan = plan;
    Object.freeze(this);
  }

  get denial(): string | undefined {
    return this.#denial;
  }

  get needsApproval(): boolean {
    return this.#needsApproval;
  }

  deny(reason: string): void {
    this.#denial ??= reason;
  }

  requireApproval(): void {
    this.#needsApproval = true;
  }
}

/** What people approve. */
export interface PlanDescription extends ShownPlan {
  readonly losses: readonly string[];
  /** Tables that are copied or locked, and what the linter finds: what blocks others, and breaks the programs that run. */
  readonly warnings: readonly string[];
  readonly requestedBy: string;
  readonly commit?: string;
  /** The digest of the plan: of what runs, and of the history on which it runs. */
  readonly plan: string;
  /** The digest of the whole history when it was requested: with another one, the plan is another one. */
  readonly history: string;
}

/** A migration of a plan. */
export interface ShownMigration {
  readonly tag: string;
  readonly direction: 'up' | 'down';
  readonly statements: readonly string[];
  /** What a rollback brings back. Absent for a rollback. */
  readonly rollback?: string;
}

/** A migration of a plan, as far as its approval depends on it. */
interface BoundMigration {
  readonly tag: string;
  readonly direction: 'up' | 'down';
  readonly checksum: string;
  /** Its row in the history before the run. */
  readonly was: string | null;
  readonly statements: readonly string[];
  /** How long it keeps what it drops. */
  readonly keptMs?: number;
}

/** What an approval is for. */
export interface BoundPlan {
  readonly action: string;
  /** Digest of the other rows of the history. */
  readonly history: string;
  readonly migrations: readonly BoundMigration[];
}

/** A plan that was reviewed before the lock. */
export interface ReviewedPlan {
  readonly bound: BoundPlan;
  /** Absent if it needs none. */
  readonly approval?: RunApproval;
}

/** The approval of a plan, as known before the lock. */
export interface RunApproval {
  readonly requestId: string;
  /** Digest of the plan that was approved; this one may be the rest of it. */
  readonly approved: string;
}
