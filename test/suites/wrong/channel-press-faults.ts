import type { Delivery } from '../../../core/approval/channel.ts';
import { parseDecision } from '../../../core/approval/parse-decision.ts';
import { isSvcError, SvcError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json.ts';
import { payloadOf, SIGNING_SECRET, signedBody, signedRequest } from '../../../examples/channel-slack/test/slack.ts';
import { isSignedBy } from '../../../plugins/channels/signature.ts';
import {
  type ChannelFault,
  decidingBy,
  deliveringBy,
  pressedBy,
  provenInBody,
  signatureOf,
  unpacked,
  verifyingBy,
} from './wrong-slack.ts';

const NEVER = new AbortController().signal;
const LATE = [
  'a press after a decision changes nothing, and the person sees that',
  'a press after the deadline changes nothing, and the person sees that',
] as const;
const PRESS = 'a press decides its request, once, and the person sees the result';
const REPLACED = 'a press after a decision does not replace what all see';
const HIDDEN = 'a press does not approve what the message does not show';

/** Channels that each break one promise about pressed buttons. */
export const CHANNEL_PRESS_FAULTS: readonly ChannelFault[] = [
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
    fault: 'accepts any age of a signature',
    detectedBy: ['a press that was signed long ago decides nothing'],
    failure: /an old request|six minutes ago/,
    channel: verifyingBy((handle) => async (request) => {
      const payload = await payloadOf(request);
      const seconds = Number(request.headers.get('x-slack-request-timestamp'));
      const isSigned =
        signatureOf(signedRequest(payload, { sentAt: new Date(seconds * 1000) })) === signatureOf(request);
      return handle(isSigned ? signedRequest(payload) : request);
    }),
  },
  {
    fault: 'accepts a signature for half an hour',
    detectedBy: ['a press that was signed long ago decides nothing'],
    failure: /an old request|six minutes ago/,
    channel: pressedBy(() => ({
      verify(headers, body) {
        const seconds = headers.get('x-slack-request-timestamp') ?? '';
        const signature = (headers.get('x-slack-signature') ?? '').slice('v0='.length);
        const signed = { secret: SIGNING_SECRET, content: [`v0:${seconds}:`, body], signature };
        return isSignedBy({ ...signed, signedAt: Number(seconds) * 1000, maxAgeMs: 1_800_000 });
      },
    })),
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
    fault: 'accepts presses in the chats of all channels of its type',
    detectedBy: ['a press for another channel with the same secret decides nothing'],
    failure: /a press of its chat, sent to the other channel, decided/,
    channel: deliveringBy(({ presses }) => {
      if (!presses) return {};
      for (const chat of presses.chats ?? []) allChats.add(chat);
      return {
        presses: {
          ...presses,
          get chats() {
            return [...allChats];
          },
        },
      };
    }),
  },
  {
    fault: 'replaces the message after every press',
    detectedBy: [REPLACED],
    failure: /a late press to approve replaced the message/,
    channel: pressedBy(({ show }) => ({ show: (result, ...press) => show({ ...result, decided: true }, ...press) })),
  },
  {
    fault: 'reports a late press as the decision of the person who pressed',
    detectedBy: [REPLACED],
    failure: /a message was replaced after a late press/,
    channel: deliveringBy(({ deliver, onDecided, presses }) => ({
      async deliver(delivery, signal) {
        const receipt = await deliver(delivery, signal);
        if (receipt !== undefined) lastReceipts.set(delivery.requestId, receipt);
        return receipt;
      },
      ...(presses && {
        presses: {
          ...presses,
          async show(result, press, body) {
            const { decided, record } = result;
            const receipts = [lastReceipts.get(press.requestId) ?? ''];
            if (record && !decided)
              await onDecided?.({ product: '', env: '', ...record, decidedBy: press.actor }, NEVER, receipts);
            return presses.show(result, press, body);
          },
        },
      }),
    })),
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

/** What the last delivery of a request returned. */
const lastReceipts = new Map<string, Json>();

/** The chats of all channels that were created. */
const allChats = new Set<string>();

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
