import type { ServerResponse } from 'node:http';
import { type ChannelReceiver, RETRY_AFTER_SECONDS, type ReceiverBehaviour } from './channel-under-test.ts';
import { type HttpRequest, startWebhookReceiver } from './webhook-receiver.ts';

type HttpBehaviour = Exclude<ReceiverBehaviour, 'hangs'>;

export interface HttpService {
  /** The options in `approvals.channels` other than `type`, for a service at this URL. */
  options(url: string): Readonly<Record<string, unknown>>;
  readonly secrets?: readonly string[];
  /** The text that the reader sees of a request with this body. */
  displayed(body: string): string;
  /** Whether a request replaces an earlier message, for all who see that: by its method or path. Default: none does. */
  replaces?(request: HttpRequest): boolean;
  /**
   * The responses of the service. Default: 200, 500, and 429 with Retry-After. `number` counts the messages from 1: use it
   * as their id. Respond as the service does to a request that it would not accept, such as a message that is too long.
   */
  readonly responses?: Readonly<
    Partial<Record<HttpBehaviour, (response: ServerResponse, number: number, request: HttpRequest) => void>>
  >;
}

const RESPONSES: Required<NonNullable<HttpService['responses']>> = {
  accepts: (response) => response.writeHead(200).end(),
  fails: (response) => response.writeHead(500).end(),
  rateLimits: (response) => response.writeHead(429, { 'retry-after': String(RETRY_AFTER_SECONDS) }).end(),
};

/**
 * A fake of an HTTP service that a channel delivers to, on a local port. The `raw` of a message is its method, path and headers
 * as JSON, a line feed, and its body.
 */
export async function httpReceiver({
  options,
  secrets = [],
  displayed,
  replaces = () => false,
  responses,
}: HttpService): Promise<ChannelReceiver> {
  let behaviour: ReceiverBehaviour = 'accepts';
  const receiver = await startWebhookReceiver((response, number, request) => {
    if (behaviour !== 'hangs') ({ ...RESPONSES, ...responses })[behaviour](response, number, request);
  });
  return {
    options: options(receiver.url),
    secrets,
    received: () =>
      receiver.received.map((received) => {
        const { body, ...request } = received;
        return {
          raw: `${JSON.stringify(request)}\n${body}`,
          displayed: displayed(body),
          replaces: replaces(received),
        };
      }),
    setBehaviour: (next) => {
      behaviour = next;
    },
    pending: () => receiver.pending(),
    close: () => receiver.close(),
  };
}
