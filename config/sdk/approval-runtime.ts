import { reconnectingBackend, type StorageBackend, type StoreOwner } from '../../core/approval/backend.ts';
import { NoticeSweep } from '../../core/approval/notices.ts';
import type { DecisionReview } from '../../core/approval/policy.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import type { Kernel } from '../../core/kernel.ts';
import { isPlanRequest } from '../../core/migration/plan-approver.ts';
import { problemText } from '../../core/validate-shape.ts';
import { compileRules } from '../load/approval-rules.ts';
import { loadMemoryStore } from '../load/builtin.ts';
import { peopleSources, rulesOf } from '../load/plan-approval.ts';
import type { Runtime } from '../load/runtime.ts';
import { ApprovalWatcher } from './approval-watcher.ts';
import { type OidcPeople, oidcPeople } from './oidc-people.ts';
import { firstOf, type PeopleSource } from './people-source.ts';
import { proxyPeople } from './proxy-people.ts';
import { reportDecision } from './report-decision.ts';

/** The storage and the approval service that the gates and agents of one configuration share. */
export interface ApprovalRuntime {
  readonly backend: StorageBackend;
  readonly kernel: Kernel;
  readonly service: ApprovalService;
  readonly notices: NoticeSweep;
  /** For all pages and streams that show requests live. */
  readonly watcher: ApprovalWatcher;
  /** Of `approvals.oidc` and `approvals.proxy`. */
  readonly people?: PeopleSource | undefined;
  readonly oidc?: OidcPeople | undefined;
  readonly owner: StoreOwner;
  close(): Promise<void>;
}

// per copy: its keys are.
const runtimes = new WeakMap<Runtime, Promise<ApprovalRuntime>>();

/** Opens the approvals of a runtime once; a failed attempt is retried on the next call. */
export function openApprovals(runtime: Runtime): Promise<ApprovalRuntime> {
  const known = runtimes.get(runtime);
  if (known) return known;
  const opening = open(runtime);
  runtimes.set(runtime, opening);
  opening.catch(() => runtimes.delete(runtime));
  return opening;
}

/** Closes the approvals of a runtime, if they were opened. */
export async function closeApprovals(runtime: Runtime): Promise<void> {
  const opened = runtimes.get(runtime);
  runtimes.delete(runtime);
  await (await opened?.catch(() => undefined))?.close();
}

async function open(runtime: Runtime): Promise<ApprovalRuntime> {
  const { product, env } = runtime;
  const kernel = await runtime.kernel();
  const tag = runtime.config.approvals?.store?.database;
  const backend = tag === undefined ? await memoryBackend(env) : databaseBackend(runtime, tag);
  const { roles = {}, rules: configured = [], proxy, oidc: provider } = runtime.config.approvals ?? {};
  const planApproval = runtime.config.environments?.[env]?.approval;
  if (planApproval) kernel.hooks.beforeDecision.tap('svc', refuseChangedPlan);
  const { rules, problems } = compileRules({
    roles,
    rules: planApproval ? rulesOf(planApproval, configured) : configured,
  });
  // Without rules, anybody would decide.
  if (problems.length > 0) throw new Error(`The rules are not valid: ${problems.map(problemText).join(' ')}`);
  const oidc = provider && oidcPeople(provider, runtime.root);
  const people = firstOf([...(oidc ? [oidc] : []), ...(proxy ? [proxyPeople(proxy, runtime.root)] : [])]);
  const owner = { product, env, database: tag ?? 'memory' };
  try {
    const service = await ApprovalService.open({
      backend,
      hooks: kernel.hooks,
      owner,
      rules,
      verifyToken: people?.verify,
      onDecided: (...args) => reportDecision(runtime, ...args),
      warn,
      log,
    });
    if (people) kernel.hooks.beforeDecision.tapPromise('svc', (review) => refuseOtherSource(runtime, service, review));
    const notices = new NoticeSweep(service);
    const watcher = new ApprovalWatcher(service);
    return {
      backend,
      kernel,
      service,
      notices,
      watcher,
      people,
      oidc,
      owner,
      async close() {
        watcher.close();
        await service.close();
        await notices.close();
        await backend.close();
      },
    };
  } catch (error) {
    await backend.close();
    throw error;
  }
}

/** What is approved is what runs. */
function refuseChangedPlan(review: DecisionReview): void {
  if (!isPlanRequest(review.request) || review.decision.modifiedParams === undefined) return;
  review.refuse('A plan is approved as it is, or rejected.');
}

/** Who can name a provider or a proxy of their own could approve plans as anybody. */
async function refuseOtherSource(
  { config }: Runtime,
  { personTokens }: ApprovalService,
  review: DecisionReview,
): Promise<void> {
  const { verifiedBy } = review.decision.principal;
  if (!isPlanRequest(review.request) || (verifiedBy !== 'oidc' && verifiedBy !== 'proxy')) return;
  const source = peopleSources(config.approvals ?? {}).get(verifiedBy);
  if (source !== undefined && (await personTokens.approvers()).includes(source)) return;
  review.refuse(
    `The store knows no such ${verifiedBy === 'oidc' ? 'provider' : 'proxy'} for those who approve migrations; svc db migrate with SVC_TOKEN of one who does adds it.`,
  );
}

function databaseBackend(runtime: Runtime, tag: string): StorageBackend {
  runtime.database(tag);
  return reconnectingBackend(async () => (await runtime.connect(tag)).connection);
}

async function memoryBackend(env: string): Promise<StorageBackend> {
  if (env !== 'dev') {
    warn(
      `Approvals of "${env}" are stored in memory: a restart loses them, and no other process can decide them. Set approvals.store in svc.config.`,
    );
  }
  const { MemoryStore } = await loadMemoryStore();
  return new MemoryStore();
}

function warn(message: string): void {
  process.emitWarning(message, 'SvcWarning');
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}
