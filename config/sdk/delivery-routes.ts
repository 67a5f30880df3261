import type { Announcement, DeliveryRoute } from '../../core/approval/announce.ts';
import { type Channel, type Delivery, DeliveryFailed } from '../../core/approval/channel.ts';
import { assertCallbackKey, callbackToken } from '../../core/approval/token.ts';
import { isSvcError, SvcError } from '../../core/errors.ts';
import type { ApprovalSettings, HumanInLoop } from '../../core/tool/human-in-loop.ts';
import type { Runtime } from '../load/runtime.ts';
import { pressUrl } from './callback/presses.ts';
import { callbackUrl } from './callback/token.ts';
import { webhookSecrets } from './webhook-secrets.ts';

/** The approval settings that a definition can depend on. */
export function approvalSettings({ config }: Runtime): ApprovalSettings {
  const { callbackBase, callbackKey } = config.approvals ?? {};
  return {
    brokers: Object.keys(config.brokers ?? {}),
    callbackBase: callbackBase !== undefined,
    callbackKey: callbackKey !== undefined,
  };
}

/**
 * The delivery routes of an agent's requests: its webhook, its broker, and the channels of the configuration. Throws
 * `config_invalid` or `name_unknown` for one that cannot be used, unless `humanInLoop` is not enabled: then only a policy
 * can require approval, and a route that cannot be used fails its deliveries.
 */
export async function routesFor(runtime: Runtime, humanInLoop: HumanInLoop): Promise<readonly DeliveryRoute[]> {
  const { approvals = {} } = runtime.config;
  const { approvalWebhook, approvalBroker, enabled } = humanInLoop;
  const routes: DeliveryRoute[] = [];
  const add = async (name: string, open: () => Promise<Channel>): Promise<void> => {
    try {
      if (approvals.callbackKey !== undefined) assertCallbackKey(approvals.callbackKey);
      routes.push(routeTo(runtime, name, await open()));
    } catch (error) {
      if (enabled || !isSvcError(error)) throw error;
      routes.push(failingRoute(name, error.message));
    }
  };
  if (approvalWebhook !== undefined) await add('webhook', () => openWebhook(runtime, approvalWebhook));
  if (approvalBroker) await add('broker', () => openBroker(runtime, approvalBroker));
  for (const name of Object.keys(approvals.channels ?? {})) await add(name, () => runtime.channel(name));
  return routes;
}

/** The channels of the configuration, for the requests of any agent. */
export async function channelRoutes(runtime: Runtime): Promise<readonly DeliveryRoute[]> {
  const names = Object.keys(runtime.config.approvals?.channels ?? {});
  return Promise.all(names.map(async (name) => routeTo(runtime, name, await runtime.channel(name))));
}

async function openWebhook(runtime: Runtime, url: string): Promise<Channel> {
  const { callbackBase, webhook: { context = false } = {} } = runtime.config.approvals ?? {};
  if (callbackBase === undefined) {
    throw new SvcError('config_invalid', 'The approval webhook needs approvals.callbackBase.', {
      why: 'Without it nobody can respond to a request.',
    });
  }
  const secrets = webhookSecrets(runtime, url);
  return (await runtime.find('channels', 'webhook'))({ url, secrets, context });
}

async function openBroker(
  runtime: Runtime,
  { broker: name, event }: NonNullable<HumanInLoop['approvalBroker']>,
): Promise<Channel> {
  const includeToken = runtime.config.approvals?.decisions?.broker === name;
  const broker = await runtime.broker(name);
  return (await runtime.find('channels', 'broker'))({ broker, event, includeToken });
}

function failingRoute(channel: string, why: string): DeliveryRoute {
  return { channel, deliver: () => Promise.reject(new DeliveryFailed(why, { retry: false })) };
}

function routeTo({ config, product, env }: Runtime, name: string, channel: Channel): DeliveryRoute {
  const { callbackBase, callbackKey: key } = config.approvals ?? {};
  const deliveryOf = async ({ request, digest, masked, definition, expiresInMs }: Announcement): Promise<Delivery> => {
    const { requestId, timeout } = request;
    const tool = await definition();
    const token = key === undefined ? undefined : callbackToken(key, { product, env, requestId, digest, timeout });
    return {
      ...request,
      product,
      env,
      expiresInMs: await expiresInMs(),
      ...(masked.length > 0 && { masked }),
      ...(tool && { description: tool.description, schema: tool.schema }),
      ...(token !== undefined && { token }),
      ...(token !== undefined &&
        callbackBase !== undefined && {
          callbackUrl: callbackUrl(callbackBase, requestId, token),
        }),
      ...(channel.presses && callbackBase !== undefined && { pressUrl: pressUrl(callbackBase, name) }),
    };
  };
  const notify = channel.notify?.bind(channel);
  const onDecided = channel.onDecided?.bind(channel);
  return {
    channel: name,
    deliver: async (announcement, signal) => channel.deliver(await deliveryOf(announcement), signal),
    ...(notify && {
      notify: async (announcement, notice, signal, receipts) =>
        notify(await deliveryOf(announcement), notice, signal, receipts),
    }),
    ...(onDecided && {
      onDecided: (record, signal, receipts) => onDecided({ ...record, product, env }, signal, receipts),
    }),
  };
}
