import type { HumanInLoop } from '../core/agent/human-in-loop.ts';
import type { Announcement, Route } from '../core/approval/announce.ts';
import type { Channel, Delivery } from '../core/approval/channel.ts';
import { callbackToken, checkCallbackKey } from '../core/approval/token.ts';
import { SvcError } from '../core/errors.ts';
import type { Runtime } from './runtime.ts';

/** The ways to whoever decides for an agent: its webhook, its broker, and the channels that every request goes to. */
export async function routesOf(runtime: Runtime, humanInLoop: HumanInLoop): Promise<readonly Route[]> {
  const { approvals = {} } = runtime.config;
  if (approvals.callbackKey !== undefined) checkCallbackKey(approvals.callbackKey);
  const routes: Route[] = [];
  const add = (name: string, channel: Channel) => routes.push(routeOver(runtime, name, channel));
  const { approvalWebhook: url, approvalBroker } = humanInLoop;
  if (url !== undefined) {
    const make = await runtime.find('channels', 'webhook');
    const { context = false } = approvals.webhook ?? {};
    add('webhook', make({ url, secrets: secretsFor(url, approvals.webhook?.secrets), context }));
  }
  if (approvalBroker) {
    const make = await runtime.find('channels', 'broker');
    const broker = await runtime.broker(approvalBroker.broker);
    const answers = approvals.decisions?.broker === approvalBroker.broker;
    add('broker', make({ broker, event: approvalBroker.event, answers }));
  }
  for (const [name, { type, ...options }] of Object.entries(approvals.channels ?? {})) {
    add(name, (await runtime.find('channels', type))(options));
  }
  return routes;
}

function secretsFor(
  url: string,
  secrets: Readonly<Record<string, readonly (string | undefined)[]>> = {},
): readonly string[] {
  const given = Object.hasOwn(secrets, url) ? (secrets[url] ?? []) : [];
  const usable = given.filter((secret) => secret !== undefined);
  if (usable.length > 0) return usable;
  throw new SvcError('config_invalid', `The approval webhook ${url} has no secret.`, {
    why: 'Requests are signed, so that the receiver knows who sends them.',
    next: [
      'echo whsec_$(openssl rand -base64 32)    makes one',
      `Set approvals.webhook.secrets['${url}'] in svc.config from the environment.`,
    ],
  });
}

function routeOver({ config, product, env }: Runtime, name: string, channel: Channel): Route {
  const { callbackBase, callbackKey: key } = config.approvals ?? {};
  const deliveryOf = async ({ request, digest, describe, expiresInMs }: Announcement): Promise<Delivery> => {
    const { requestId, timeout } = request;
    const description = await describe();
    const token = key === undefined ? undefined : callbackToken(key, { product, env, requestId, digest, timeout });
    return {
      ...request,
      product,
      env,
      expiresInMs: await expiresInMs(),
      ...(description !== undefined && { description }),
      ...(token !== undefined && { token }),
      ...(token !== undefined &&
        callbackBase !== undefined && {
          callbackUrl: `${callbackBase.replace(/\/+$/, '')}/approvals/${requestId}/respond?token=${token}`,
        }),
    };
  };
  const decided = channel.decided?.bind(channel);
  return {
    channel: name,
    deliver: async (announcement, signal) => channel.deliver(await deliveryOf(announcement), signal),
    ...(decided && { decided }),
  };
}
