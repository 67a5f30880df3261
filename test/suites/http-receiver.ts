import type { ServerResponse } from 'node:http';
import { type ReceiverBehaviour, type ChannelReceiver, RETRY_AFTER_SECONDS } from './channel-suite.ts';
import { startWebhookReceiver } from './webhook-receiver.ts';

type Answered = Exclude<ReceiverBehaviour, 'hangs'>;

export interface HttpService {
  /** What `approvals.channels` says beside the `type`, for a service at that URL. */
  options(url: string): Readonly<Record<string, unknown>>;
  readonly secrets?: readonly string[];
  /** What the reader is shown of a request with that body. */
  displayed(body: string): string;
  /** In the service's own words; by default 200, 500, and 429 with Retry-After. */
  readonly answers?: Readonly<Partial<Record<Answered, (response: ServerResponse) => void>>>;
}

const ANSWERS: Record<Answered, (response: ServerResponse) => void> = {
  takes: (response) => response.writeHead(200).end(),
  refuses: (response) => response.writeHead(500).end(),
  pauses: (response) => response.writeHead(429, { 'retry-after': String(RETRY_AFTER_SECONDS) }).end(),
};

/** A stand-in for a service that channels reach over HTTP, on a port of this machine. */
export async function httpReceiver({ options, secrets = [], displayed, answers }: HttpService): Promise<ChannelReceiver> {
  let behaviour: ReceiverBehaviour = 'takes';
  const to = await startWebhookReceiver((response) => {
    if (behaviour !== 'hangs') ({ ...ANSWERS, ...answers })[behaviour](response);
  });
  return {
    options: options(to.url),
    secrets,
    received: () =>
      to.received.map(({ headers, body }) => ({ raw: `${JSON.stringify(headers)}\n${body}`, displayed: displayed(body) })),
    setBehaviour: (as) => {
      behaviour = as;
    },
    close: () => to.close(),
  };
}
