import type { Svc } from '../../../config/sdk/index.ts';
import type { Channel } from '../../../core/approval/channel.ts';
import type { Presses } from '../../../core/approval/presses.ts';
import { Kernel } from '../../../core/kernel.ts';
import { applyPlugin, definePlugin } from '../../../core/plugin.ts';
import { slackPresses as pressesOf } from '../../../examples/channel-slack/src/presses.ts';
import {
  CHANNEL,
  PRESS_URL,
  SIGNING_SECRET,
  slackPresses,
  slackUnderTest,
} from '../../../examples/channel-slack/test/slack.ts';
import { type DecidingClient, pressEndpoint } from '../../../plugins/channels/press-endpoint.ts';
import type { ChannelUnderTest, EndpointUnderTest } from '../channel-under-test.ts';

/** The Slack channel, changed in one part. */

export interface ChannelFault {
  readonly fault: string;
  /** The cases of the suite that must fail, and how. */
  readonly detectedBy: readonly string[];
  readonly failure: RegExp;
  readonly channel: ChannelUnderTest;
}

type Options = Readonly<Record<string, unknown>>;
type Handler = (request: Request) => Promise<Response>;

/** The Slack channel with other deliveries. */
export function deliveringBy(wrap: (channel: Channel, options: Options) => Partial<Channel>): ChannelUnderTest {
  const { plugin, type } = slackUnderTest;
  const wrong = definePlugin({
    name: plugin.name,
    apply(kernel) {
      const inner = new Kernel();
      applyPlugin(inner, plugin, plugin.name);
      kernel.channels.register(type, (options) => {
        const channel = inner.channels.get(type)(options);
        return { ...channel, ...wrap(channel, options) };
      });
    },
  });
  return { ...slackUnderTest, plugin: wrong };
}

/** The Slack channel with other presses. */
export const pressedBy = (wrap: (presses: Presses) => Partial<Presses>): ChannelUnderTest =>
  deliveringBy(({ presses }) => (presses ? { presses: { ...presses, ...wrap(presses) } } : {}));

/** An endpoint of an application for the presses of the Slack channel. */
const endpointOf = (svc: DecidingClient): Handler =>
  pressEndpoint({ svc, ...pressesOf({ token: 'xoxb-1', channel: CHANNEL, signingSecret: SIGNING_SECRET }) });

/** Decisions through such an endpoint. */
const decisionsThrough = (createHandler: (svc: Svc) => Handler): EndpointUnderTest => ({
  async open(svc) {
    const handler = createHandler(svc);
    return {
      request: slackPresses.request,
      handle: async (request) => slackPresses.seen(await handler(request.clone()), request),
      close: () => undefined,
    };
  },
});

/** The Slack channel with an endpoint that checks the requests that it receives otherwise. */
export const verifyingBy = (wrap: (handle: Handler) => Handler): ChannelUnderTest => ({
  ...slackUnderTest,
  decisions: decisionsThrough((svc) => wrap(endpointOf(svc))),
});

const PROOF = ['x-slack-request-timestamp', 'x-slack-signature'];

/** A press whose body contains the proof: what Slack sends as headers, and the body that they sign. */
interface ProvenBody {
  readonly proof: Readonly<Record<string, string>>;
  readonly body: string;
}

const postOf = (body: string | ReadableStream): Request =>
  new Request(PRESS_URL, { method: 'POST', body, duplex: 'half' });

/** The Slack channel of a service with the proof in the body. `unpack` returns the request as Slack sends it. */
export const provenInBody = (unpack: (content: ProvenBody) => Request): ChannelUnderTest => ({
  ...slackUnderTest,
  decisions: {
    async open(svc) {
      const receiver = await decisionsThrough(endpointOf).open(svc);
      return {
        ...receiver,
        request(message, press) {
          const request = receiver.request(message, press);
          return request && postOf(ReadableStream.from(packed(request)));
        },
        async withoutProof(press) {
          return postOf(JSON.stringify({ ...(JSON.parse(await press.text()) as ProvenBody), proof: {} }));
        },
        async handle(request) {
          const { proof = {}, body = '' } = JSON.parse((await request.text()) || '{}') as Partial<ProvenBody>;
          return receiver.handle(unpack({ proof, body }));
        },
      };
    },
  },
});

async function* packed(request: Request): AsyncGenerator<Uint8Array> {
  const proof = Object.fromEntries(PROOF.map((name) => [name, request.headers.get(name) ?? '']));
  yield Buffer.from(JSON.stringify({ proof, body: await request.text() }));
}

/** Passes the proof on to Slack's handler. */
export const unpacked = ({ proof, body }: ProvenBody): Request =>
  new Request(PRESS_URL, { method: 'POST', headers: proof, body });

/** The Slack channel with other decisions. */
export const decidingBy = (wrap: (svc: Svc) => PartialClient): ChannelUnderTest => ({
  ...slackUnderTest,
  decisions: decisionsThrough((svc) => {
    const { signal = svc.agents.signal.bind(svc.agents), get = svc.approvals.get.bind(svc.approvals) } = wrap(svc);
    // All that the handler uses of the client.
    return endpointOf({ agents: { signal }, approvals: { get } });
  }),
});

interface PartialClient {
  readonly signal?: Svc['agents']['signal'];
  readonly get?: DecidingClient['approvals']['get'];
}

export const signatureOf = ({ headers }: Request): string => headers.get('x-slack-signature') ?? '';
