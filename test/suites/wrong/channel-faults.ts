import type { Svc } from '../../../config/sdk/index.ts';
import type { Channel, Delivery } from '../../../core/approval/channel.ts';
import { parseDecision } from '../../../core/approval/parse-decision.ts';
import type { Presses } from '../../../core/approval/presses.ts';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import { Kernel } from '../../../core/kernel.ts';
import { applyPlugin, definePlugin } from '../../../core/plugin.ts';
import { slackPresses as pressesOf } from '../../../examples/channel-slack/src/presses.ts';
import {
  CHANNEL,
  PRESS_URL,
  payloadOf,
  SIGNING_SECRET,
  signedBody,
  signedRequest,
  slackPresses,
  slackUnderTest,
} from '../../../examples/channel-slack/test/slack.ts';
import { type DecidingClient, pressEndpoint } from '../../../plugins/channels/press-endpoint.ts';
import type { EndpointUnderTest } from '../channel-decisions.ts';
import type { ChannelUnderTest } from '../channel-suite.ts';
import { httpReceiver } from '../http-receiver.ts';

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
const verifyingBy = (wrap: (handle: Handler) => Handler): ChannelUnderTest => ({
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
const provenInBody = (unpack: (content: ProvenBody) => Request): ChannelUnderTest => ({
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
const unpacked = ({ proof, body }: ProvenBody): Request =>
  new Request(PRESS_URL, { method: 'POST', headers: proof, body });

/** The Slack channel with other decisions. */
const decidingBy = (wrap: (svc: Svc) => PartialClient): ChannelUnderTest => ({
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

const signatureOf = ({ headers }: Request): string => headers.get('x-slack-signature') ?? '';

const NEVER = new AbortController().signal;
const SIGNAL = 'an attempt ends with its signal';
const LATE = [
  'a press after a decision changes nothing, and the person sees that',
  'a press after the deadline changes nothing, and the person sees that',
] as const;
const PRESS = 'a press decides its request, once, and the person sees the result';
const REPORT = 'a decision is reported, also by a process that did not deliver the request';
const EVERY_MESSAGE = 'a report reaches every message of its request';
const HIDDEN = 'a press does not approve what the message does not show';

const UNESCAPED: ChannelUnderTest = {
  ...slackUnderTest,
  async receiver() {
    const receiver = await slackUnderTest.receiver();
    const unescaped = (raw: string) => raw.replaceAll('&lt;', '<').replaceAll('&gt;', '>');
    return {
      ...receiver,
      received: () => receiver.received().map(({ raw, displayed }) => ({ raw: unescaped(raw), displayed })),
    };
  },
};

/** Right channels, and cases of the suite that pass. */
export const RIGHT_CHANNELS: readonly { readonly channel: ChannelUnderTest; readonly passes: readonly string[] }[] = [
  {
    channel: provenInBody(unpacked),
    passes: [
      'a press that the service did not sign decides nothing',
      'a press with the signature of another decides nothing',
      'a press that was signed long ago decides nothing',
    ],
  },
  { channel: { ...UNESCAPED, markupArea: () => '' }, passes: ['hostile text is harmless'] },
];

/** Channels that each break one promise of the contract. */
export const CHANNEL_FAULTS: readonly ChannelFault[] = [
  {
    fault: 'counts a rejected message as delivered',
    detectedBy: ['a rejected message is not delivered', 'a failed attempt is repeated until it succeeds'],
    failure: /counts as delivered|not_delivered/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) => deliver(delivery, signal).catch(() => undefined),
    })),
  },
  {
    fault: 'ignores how long the service asks it to wait',
    detectedBy: ['a rate limit delays the next attempt'],
    failure: /it threw a Error/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) =>
        deliver(delivery, signal).catch((error: Error) => {
          throw new Error(error.message);
        }),
    })),
  },
  {
    fault: 'does not name the product and the environment',
    detectedBy: ['one attempt sends one message that shows the whole request'],
    failure: /the message does not show "acme"/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) => deliver({ ...delivery, product: '', env: '' }, signal),
    })),
  },
  {
    fault: 'waits for a service that hangs',
    detectedBy: [SIGNAL],
    failure: /deliver\(\) did not end/,
    channel: deliveringBy(({ deliver }) => ({ deliver: (delivery) => deliver(delivery, NEVER) })),
  },
  {
    fault: 'leaves the connection of an aborted attempt open',
    detectedBy: [SIGNAL],
    failure: /its connection is still open/,
    channel: deliveringBy(({ deliver }) => ({
      async deliver(delivery, signal) {
        const aborted = new Promise<never>((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason));
        });
        await Promise.race([deliver(delivery, NEVER), aborted]);
      },
    })),
  },
  {
    fault: 'keeps its options in a variable of its module',
    detectedBy: ['two channels of a type do not share their options'],
    failure: /one attempt sent 0 messages|delivered to another channel/,
    channel: deliveringBy((channel) => {
      latest = channel;
      return { deliver: (delivery, signal) => (latest as Channel).deliver(delivery, signal) };
    }),
  },
  {
    fault: 'writes its token into errors',
    detectedBy: ['no secret is sent or in an error'],
    failure: /contains a secret/,
    channel: deliveringBy(({ deliver }, { token }) => ({
      deliver: (delivery, signal) =>
        deliver(delivery, signal).catch((error: Error) => {
          throw new Error(`${error.message} (token ${token})`);
        }),
    })),
  },
  {
    fault: 'leaves the buttons in the message about the decision',
    detectedBy: [PRESS],
    failure: /still has a button to approve/,
    channel: deliveringBy(({ deliver }) => ({
      onDecided: async (record, signal) =>
        void (await deliver({ ...record, product: 'acme', env: 'dev', expiresInMs: 0 }, signal)),
    })),
  },
  {
    fault: 'sends a message that is longer than the service accepts',
    detectedBy: ['shortened text is marked'],
    failure: /was answered with 400/,
    channel: {
      ...slackUnderTest,
      receiver: () =>
        httpReceiver({
          options: (api) => ({ token: 'xoxb-1', channel: CHANNEL, signingSecret: SIGNING_SECRET, api }),
          displayed: (body) => body,
          responses: {
            accepts: (response, _number, { body }) =>
              response.writeHead(body.length > 2_000 ? 400 : 200).end('{"ok":true,"ts":"1"}'),
          },
        }),
    },
  },
  {
    fault: 'reminds nobody',
    detectedBy: ['a reminder and an escalation are messages that name the request'],
    failure: /two notices sent 0 messages/,
    channel: deliveringBy(() => ({ notify: async () => undefined })),
  },
  {
    fault: 'hides that a reminder was not accepted',
    detectedBy: ['a rejected message is not delivered'],
    failure: /notify\(\) resolved/,
    channel: deliveringBy(({ notify }) => ({ notify: async (...args) => notify?.(...args).catch(() => undefined) })),
  },
  {
    fault: 'hides that a report was not accepted',
    detectedBy: ['a rejected message is not delivered'],
    failure: /onDecided\(\) resolved/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (...args) => onDecided?.(...args).catch(() => undefined),
    })),
  },
  {
    fault: 'reports every decision as an approval',
    detectedBy: [REPORT],
    failure: /two different decisions look the same/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, ...rest) => onDecided?.({ ...record, status: 'approved' }, ...rest),
    })),
  },
  {
    fault: 'does not say who decided',
    detectedBy: [REPORT],
    failure: /does not show who decided/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async ({ decidedBy: _decidedBy, ...record }, ...rest) => onDecided?.(record, ...rest),
    })),
  },
  {
    fault: 'edits only the first message about a request',
    detectedBy: [EVERY_MESSAGE],
    failure: /one of 2, was not updated/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, signal, receipts) => onDecided?.(record, signal, receipts.slice(0, 1)),
    })),
  },
  {
    fault: 'edits only the last message about a request, a reminder',
    detectedBy: [EVERY_MESSAGE],
    failure: /one of 3, was not updated/,
    channel: deliveringBy(({ deliver, onDecided }) => ({
      notify: (delivery, _notice, signal) => deliver(delivery, signal),
      onDecided: async (record, signal, receipts) => onDecided?.(record, signal, receipts.slice(-1)),
    })),
  },
  {
    fault: 'edits the request, delivered twice, and not its reminder',
    detectedBy: [EVERY_MESSAGE],
    failure: /one of 3, was not updated/,
    channel: deliveringBy(({ deliver, onDecided }) => ({
      notify: (delivery, _notice, signal) => deliver(delivery, signal),
      onDecided: async (record, signal, receipts) => onDecided?.(record, signal, receipts.slice(0, 2)),
    })),
  },
  {
    fault: 'edits its first message after every decision',
    detectedBy: [REPORT],
    failure: /a report edits another message/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, signal) => onDecided?.(record, signal, ['1700000000.1']),
    })),
  },
  {
    fault: 'edits the message after its own',
    detectedBy: [REPORT],
    failure: /a report edits another message/,
    channel: deliveringBy(({ onDecided }) => ({
      onDecided: async (record, signal, receipts) =>
        onDecided?.(
          record,
          signal,
          receipts.map((ts) => `${ts}0`),
        ),
    })),
  },
  {
    fault: 'shows the token',
    detectedBy: ['no secret is sent or in an error'],
    failure: /a person sees the token/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) =>
        deliver({ ...delivery, reason: `${delivery.reason} To decide, use ${delivery.token}` }, signal),
    })),
  },
  {
    fault: 'reveals sensitive parameters to the person who presses',
    detectedBy: [HIDDEN],
    failure: /a press showed a sensitive value/,
    channel: decidingBy((svc) => ({
      signal: (signal, options) =>
        svc.agents.signal(signal, options).catch(async (error) => {
          if (!isSvcError(error) || error.code !== 'approval_unseen') throw error;
          const { parameters } = await svc.approvals.get(signal.payload.requestId, { reveal: true });
          throw new SvcError(error.code, `${error.message} ${JSON.stringify(parameters)}`);
        }),
    })),
  },
  {
    fault: 'offers a button to approve shortened parameters',
    detectedBy: [HIDDEN],
    failure: /a shortened message has a button to approve/,
    channel: deliveringBy(({ deliver }) => ({
      deliver: (delivery, signal) => deliver({ ...delivery, parameters: shortened(delivery) }, signal),
    })),
  },
  {
    fault: 'does not verify who sends a press',
    detectedBy: ['a press that the service did not sign decides nothing'],
    failure: /signed with another secret/,
    channel: pressedBy(() => ({ verify: () => true })),
  },
  {
    fault: 'has an endpoint that does not verify who sends a press',
    detectedBy: ['a press that the service did not sign decides nothing'],
    failure: /signed with another secret/,
    channel: verifyingBy((handle) => async (request) => handle(signedRequest(await payloadOf(request)))),
  },
  {
    fault: 'accepts a body without its proof',
    detectedBy: ['a press that the service did not sign decides nothing'],
    failure: /without a signature/,
    channel: provenInBody((content) =>
      'x-slack-signature' in content.proof ? unpacked(content) : signedBody(content.body),
    ),
  },
  {
    fault: 'does not escape markup',
    detectedBy: ['hostile text is harmless'],
    failure: /<!channel> was sent unescaped/,
    channel: UNESCAPED,
  },
  {
    fault: 'accepts any age of a signature',
    detectedBy: ['a press that was signed long ago decides nothing'],
    failure: /an old request|an hour ago/,
    channel: verifyingBy((handle) => async (request) => {
      const payload = await payloadOf(request);
      const seconds = Number(request.headers.get('x-slack-request-timestamp'));
      const isSigned =
        signatureOf(signedRequest(payload, { sentAt: new Date(seconds * 1000) })) === signatureOf(request);
      return handle(isSigned ? signedRequest(payload) : request);
    }),
  },
  {
    fault: 'approves by every button that is not the one to reject',
    detectedBy: ['a press of an unknown button decides nothing'],
    failure: /a button that the channel does not have decided/,
    channel: pressedBy(({ read }) => ({
      read(body) {
        const text = Buffer.from(body).toString();
        return read(text.includes('svc_reject') ? body : Buffer.from(text.replace(/svc_[a-z]+/, 'svc_approve')));
      },
    })),
  },
  ...[
    { fault: 'reads the last of two values with one key', failure: /a body with the key "user" twice/ },
    { fault: 'reads bytes that are not UTF-8', failure: /a body with a byte that is not UTF-8/, isStrict: true },
  ].map(({ isStrict, ...fault }) => ({
    ...fault,
    detectedBy: ['a press whose body can be read in two ways decides nothing'],
    channel: pressedBy(({ read }) => ({
      read(body) {
        const text = new URLSearchParams(Buffer.from(body).toString()).get('payload') ?? '';
        const payload = isStrict ? parseDecision(text) : JSON.parse(text);
        return read(Buffer.from(`payload=${encodeURIComponent(JSON.stringify(payload))}`));
      },
    })),
  })),
  {
    fault: 'does not check in which chat a button was pressed',
    detectedBy: ['a press in another chat decides nothing'],
    failure: /a press in another chat decided/,
    channel: deliveringBy(({ presses }) => {
      if (!presses) return {};
      const { chats: _chats, ...anywhere } = presses;
      return { presses: anywhere };
    }),
  },
  {
    fault: 'accepts the beginning of a signature',
    detectedBy: ['a press that the service did not sign decides nothing'],
    failure: /with the beginning of its signature in x-slack-signature/,
    channel: verifyingBy((handle) => async (request) => {
      const payload = await payloadOf(request);
      const sentAt = new Date(Number(request.headers.get('x-slack-request-timestamp')) * 1000);
      const isBeginning = signatureOf(signedRequest(payload, { sentAt })).startsWith(signatureOf(request) || '-');
      return handle(isBeginning ? signedRequest(payload) : request);
    }),
  },
  {
    fault: 'compares only the end of a signature',
    detectedBy: ['a press that the service did not sign decides nothing'],
    failure: /with a character in the middle of its signature changed/,
    channel: verifyingBy((handle) => async (request) => {
      const payload = await payloadOf(request);
      const sentAt = new Date(Number(request.headers.get('x-slack-request-timestamp')) * 1000);
      const ends = [signedRequest(payload, { sentAt }), request].map(
        (one) => signatureOf(one).slice(0, 4) + signatureOf(one).slice(-8),
      );
      return handle(ends[0] === ends[1] ? signedRequest(payload) : request);
    }),
  },
  {
    fault: 'trusts a signature that it verified before',
    detectedBy: ['a press with the signature of another decides nothing'],
    failure: /decided with the signature of another/,
    channel: verifyingBy((handle) => {
      const verified = new Set<string>();
      return async (request) => {
        if (verified.has(signatureOf(request))) return handle(signedRequest(await payloadOf(request)));
        const response = await handle(request.clone());
        if (response.ok) verified.add(signatureOf(request));
        return response;
      };
    }),
  },
  {
    fault: 'decides the newest request instead of the one of the message',
    detectedBy: [PRESS],
    failure: /a repeated press decided another request/,
    channel: decidingBy((svc) => ({
      async signal({ signal, payload }, options) {
        const { requestId } = (await svc.approvals.list()).records.at(-1) ?? payload;
        return svc.agents.signal({ signal, payload: { requestId } }, options);
      },
    })),
  },
  {
    fault: 'does not record who pressed',
    detectedBy: [PRESS],
    failure: /recorded as made by unknown/,
    channel: decidingBy((svc) => ({ signal: (signal) => svc.agents.signal(signal) })),
  },
  {
    fault: 'shows the press instead of the decision',
    detectedBy: LATE,
    failure: /sees a decision that/,
    channel: decidingBy((svc) => {
      let presser: string | undefined;
      let shown: 'approved' | 'rejected' = 'approved';
      return {
        async signal(signal, options) {
          presser = options?.actor;
          const { executionId = '', payload } = signal;
          shown = signal.signal === 'approve' ? 'approved' : 'rejected';
          const pressed = { requestId: payload.requestId, executionId, status: shown, decidedAt: '' } as const;
          return svc.agents.signal(signal, options).catch(() => pressed);
        },
        get: async (requestId) => withDecider({ ...(await svc.approvals.get(requestId)), status: shown }, presser),
      };
    }),
  },
  {
    fault: 'shows a repeated decision as that of the second person',
    detectedBy: [LATE[0]],
    failure: /sees a decision that they did not make/,
    channel: decidingBy((svc) => {
      let presser: string | undefined;
      return {
        async signal(signal, options) {
          presser = options?.actor;
          return svc.agents.signal(signal, options);
        },
        get: async (requestId) => withDecider(await svc.approvals.get(requestId), presser),
      };
    }),
  },
  {
    fault: 'approves sensitive parameters that nobody saw',
    detectedBy: [HIDDEN],
    failure: /sensitive parameters were approved/,
    channel: {
      ...decidingBy((svc) => ({
        signal: (signal, options) =>
          svc.agents.signal(signal, options).catch(async (error) => {
            if (!isSvcError(error) || error.code !== 'approval_unseen') throw error;
            const { reviewToken = '' } = await svc.approvals.get(signal.payload.requestId, { reveal: true });
            return svc.agents.signal(signal, { ...options, reviewToken });
          }),
      })),
      plugin: deliveringBy(({ deliver }) => ({
        // With the buttons that decide.
        deliver: ({ masked: _masked, ...delivery }, signal) => deliver(delivery, signal),
      })).plugin,
    },
  },
];

/** The channel that was created last. */
let latest: Channel | undefined;

const shortened = ({ parameters }: Delivery): Delivery['parameters'] =>
  Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [
      name,
      typeof value === 'string' ? `${value.slice(0, 100)} …` : value,
    ]),
  );

const withDecider = <Details extends object>(details: Details, decidedBy: string | undefined): Details => ({
  ...details,
  ...(decidedBy !== undefined && { decidedBy }),
});
