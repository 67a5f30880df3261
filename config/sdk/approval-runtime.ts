import type { Announcement, DeliveryRoute } from '../../core/approval/announce.ts';
import { reconnectingBackend, type StorageBackend, type StoreOwner } from '../../core/approval/backend.ts';
import type { Channel, Delivery } from '../../core/approval/channel.ts';
import { ApprovalService } from '../../core/approval/service.ts';
import { assertCallbackKey, callbackToken } from '../../core/approval/token.ts';
import { SvcError } from '../../core/errors.ts';
import type { Kernel } from '../../core/kernel.ts';
import type { ApprovalSettings, HumanInLoop } from '../../core/tool/human-in-loop.ts';
import { loadMemoryStore } from '../load/builtin.ts';
import type { Runtime } from '../load/runtime.ts';

/** The storage and the approval service that the gates and agents of one configuration share. */
export interface ApprovalRuntime {
  readonly backend: StorageBackend;
  readonly kernel: Kernel;
  readonly service: ApprovalService;
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
  await (await runtimes.get(runtime)?.catch(() => undefined))?.close();
}

async function open(runtime: Runtime): Promise<ApprovalRuntime> {
  const { product, env } = runtime;
  const kernel = await runtime.kernel();
  const tag = runtime.config.approvals?.store?.database;
  const backend = tag === undefined ? await memoryBackend(env) : databaseBackend(runtime, tag);
  const owner = { product, env, database: tag ?? 'memory' };
  try {
    const service = await ApprovalService.open({ backend, hooks: kernel.hooks, owner, warn, log });
    return {
      backend,
      kernel,
      service,
      owner,
      async close() {
        await service.close();
        await backend.close();
      },
    };
  } catch (error) {
    await backend.close();
    throw error;
  }
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

/** The approval settings that a definition can depend on. */
export function approvalSettings({ config }: Runtime): ApprovalSettings {
  const { callbackBase, callbackKey } = config.approvals ?? {};
  return {
    brokers: Object.keys(config.brokers ?? {}),
    callbackBase: callbackBase !== undefined,
    callbackKey: callbackKey !== undefined,
  };
}

/** The delivery routes of an agent's requests: its webhook, its broker, and the channels of the configuration. */
export async function routesFor(runtime: Runtime, humanInLoop: HumanInLoop): Promise<readonly DeliveryRoute[]> {
  const { approvals = {} } = runtime.config;
  if (approvals.callbackKey !== undefined) assertCallbackKey(approvals.callbackKey);
  const routes: DeliveryRoute[] = [];
  const add = (name: string, channel: Channel) => routes.push(routeTo(runtime, name, channel));
  const { approvalWebhook: url, approvalBroker } = humanInLoop;
  if (url !== undefined) {
    const createChannel = await runtime.find('channels', 'webhook');
    const { context = false } = approvals.webhook ?? {};
    add('webhook', createChannel({ url, secrets: webhookSecrets(url, approvals.webhook?.secrets), context }));
  }
  if (approvalBroker) {
    const createChannel = await runtime.find('channels', 'broker');
    const broker = await runtime.broker(approvalBroker.broker);
    const includeToken = approvals.decisions?.broker === approvalBroker.broker;
    add('broker', createChannel({ broker, event: approvalBroker.event, includeToken }));
  }
  for (const name of Object.keys(approvals.channels ?? {})) add(name, await runtime.channel(name));
  return routes;
}

function webhookSecrets(
  url: string,
  secrets: Readonly<Record<string, readonly (string | undefined)[]>> = {},
): readonly string[] {
  const given = Object.hasOwn(secrets, url) ? (secrets[url] ?? []) : [];
  const usable = given.filter((secret) => secret !== undefined);
  if (usable.length > 0) return usable;
  throw new SvcError('config_invalid', `The approval webhook ${url} has no secret.`, {
    why: 'Requests are signed so that the receiver can verify the sender.',
    next: [
      'echo whsec_$(openssl rand -base64 32)    generates one',
      `Set approvals.webhook.secrets['${url}'] in svc.config from the environment.`,
    ],
  });
}

function routeTo({ config, product, env }: Runtime, name: string, channel: Channel): DeliveryRoute {
  const { callbackBase, callbackKey: key } = config.approvals ?? {};
  const deliveryOf = async ({ request, digest, definition, expiresInMs }: Announcement): Promise<Delivery> => {
    const { requestId, timeout } = request;
    const tool = await definition();
    const token = key === undefined ? undefined : callbackToken(key, { product, env, requestId, digest, timeout });
    return {
      ...request,
      product,
      env,
      expiresInMs: await expiresInMs(),
      ...(tool && { description: tool.description, schema: tool.schema }),
      ...(token !== undefined && { token }),
      ...(token !== undefined &&
        callbackBase !== undefined && {
          callbackUrl: `${callbackBase.replace(/\/+$/, '')}/approvals/${requestId}/respond?token=${token}`,
        }),
    };
  };
  const onDecided = channel.onDecided?.bind(channel);
  return {
    channel: name,
    deliver: async (announcement, signal) => channel.deliver(await deliveryOf(announcement), signal),
    ...(onDecided && { onDecided }),
  };
}
