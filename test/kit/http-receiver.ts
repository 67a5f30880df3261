import type { ServerResponse } from 'node:http';
import { type Behaviour, type ChannelReceiver, PAUSE_SECONDS } from './channel-suite.ts';
import { receiver } from './receiver.ts';

type Answered = Exclude<Behaviour, 'hangs'>;

export interface HttpService {
  /** What `approvals.channels` says beside the `type`, for a service at that URL. */
  options(url: string): Readonly<Record<string, unknown>>;
  readonly secrets?: readonly string[];
  /** What the reader is shown of a request with that body. */
  shown(body: string): string;
  /** In the service's own words; by default 200, 500, and 429 with Retry-After. */
  readonly answers?: Readonly<Partial<Record<Answered, (response: ServerResponse) => void>>>;
}

const ANSWERS: Record<Answered, (response: ServerResponse) => void> = {
  takes: (response) => response.writeHead(200).end(),
  refuses: (response) => response.writeHead(500).end(),
  pauses: (response) => response.writeHead(429, { 'retry-after': String(PAUSE_SECONDS) }).end(),
};

/** A stand-in for a service that channels reach over HTTP, on a port of this machine. */
export async function httpReceiver({ options, secrets = [], shown, answers }: HttpService): Promise<ChannelReceiver> {
  let behaviour: Behaviour = 'takes';
  const to = await receiver((response) => {
    if (behaviour !== 'hangs') ({ ...ANSWERS, ...answers })[behaviour](response);
  });
  return {
    options: options(to.url),
    secrets,
    received: () =>
      to.received.map(({ headers, body }) => ({ whole: `${JSON.stringify(headers)}\n${body}`, shown: shown(body) })),
    behave: (as) => {
      behaviour = as;
    },
    close: () => to.close(),
  };
}
