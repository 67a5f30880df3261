import type { Svc } from '../../config/sdk/index.ts';
import type { Plugin } from '../../core/kernel.ts';
import type { UnderTest } from './suite.ts';

/** A channel, and a receiver of what it delivers. */
export interface ChannelUnderTest extends UnderTest {
  /** The plugin that its package exports. */
  readonly plugin: Plugin;
  /** The name under which the plugin registers the channel. */
  readonly type: string;
  /** A person must not see misleading characters; a program must receive every character unchanged. */
  readonly reader: 'person' | 'program';
  /** Markup of the medium, which must arrive as text: `['<!channel>']` on Slack. Empty if the medium shows every text as it is. */
  readonly markup: readonly string[];
  /**
   * The parts of `raw` in which markup has an effect, such as all that is not in a code block. Default: all of it. Let `markup`
   * then also contain what would end a code block.
   */
  markupArea?(raw: string): string;
  /** How decisions are made in the medium, or why none are: the reason with which their cases are skipped. */
  readonly decisions: DecisionsUnderTest | string;
  /** Creates a fake of the service for one case. */
  receiver(): Promise<ChannelReceiver>;
}

export interface ChannelReceiver {
  /** The options in `approvals.channels` other than `type`. */
  readonly options: Readonly<Record<string, unknown>>;
  /** Texts in the options that must not occur in an error. */
  readonly secrets: readonly string[];
  /** Every message, oldest first, including those it did not accept. */
  received(): readonly ChannelMessage[];
  /** Changes how it responds from now on. It starts as `accepts`. */
  setBehaviour(behaviour: ReceiverBehaviour): void;
  /** The number of senders that wait for a response. Without it, connections left open are not detected. */
  pending?(): number;
  /** Stops the receiver. A second call does nothing. */
  close(): void | Promise<void>;
}

export interface ChannelMessage {
  /** Everything that was sent. */
  readonly raw: string;
  /** What the reader sees of it; for a program, the JSON that it reads. */
  readonly displayed: string;
  /** Whether it takes the place of an earlier message, for all who see that one. Default: no. */
  readonly replaces?: boolean;
}

/** Whether a message contains a text, which the medium may escape. */
export const containsText = ({ raw, displayed }: ChannelMessage, text: string): boolean =>
  raw.includes(text) || displayed.includes(text);

/** `rateLimits`: rejects the message and requests a pause of RETRY_AFTER_SECONDS, as the service does. */
export type ReceiverBehaviour = 'accepts' | 'fails' | 'rateLimits' | 'hangs';

/** The pause that a receiver in the state `rateLimits` requests, in seconds. */
export const RETRY_AFTER_SECONDS = 7;

/** How buttons are pressed: those of a channel with `presses`, or of one with an endpoint of its own. */
export type DecisionsUnderTest = PressesUnderTest | EndpointUnderTest;

/** The service of a channel, when somebody presses a button. */
export interface PressedButtons {
  /**
   * Builds the HTTP request that the service sends when a person presses a button of a message. Returns undefined if the
   * message has no such button.
   */
  request(message: ChannelMessage, press: ButtonPress): Request | undefined;
  /**
   * The press without the proof that the service sent it, if that is in the body, such as a token. Default: the press without
   * headers and query.
   */
  withoutProof?(press: Request): Request | Promise<Request>;
  /**
   * The options of a second channel with the same secret that differ from those of the receiver: it delivers to the other chat of
   * `isElsewhere`, such as `{ chat: 'another' }`. Without it, skip the case about two channels.
   */
  readonly elsewhere?: Readonly<Record<string, unknown>>;
}

/** What a person sees, alone or with what the service was sent to show it. */
export type Seen = string | ChannelMessage;

/** Of a channel with `presses`: the suite passes requests to the handler of the client, as `svc approvals serve` does. */
export interface PressesUnderTest extends PressedButtons {
  /**
   * What the person then sees of a press, `''` if nothing. Default: the text of the response. Also called for requests that
   * the service did not send. If what was sent to show it is not the response, return both: markup is searched in `raw`. With
   * `replaces` if it takes the place of the message, for all who see that.
   */
  seen?(response: Response, press: Request): Seen | Promise<Seen>;
}

/** Of a channel without `presses`, whose endpoint an application serves itself. */
export interface EndpointUnderTest {
  /** Starts it for a client, as an application does. */
  open(svc: Svc): Promise<DecisionReceiver>;
}

export interface DecisionReceiver extends PressedButtons {
  /** Passes a request to the channel. Resolves, when it is processed, to what the person then sees; `''` if nothing. */
  handle(request: Request): Promise<Seen>;
  close(): void | Promise<void>;
}

export interface ButtonPress {
  /**
   * With `unknown`, the suite has written `unknown` for `approve` in the message, as in one of another version of the channel:
   * build the press of that button, whose value has this word. Return undefined if there cannot be one.
   */
  readonly button: 'approve' | 'reject' | 'unknown';
  /** The press URL of a channel with `presses`, to which the service sends the request. */
  readonly url: string;
  /** The person's id in the service. */
  readonly user: string;
  /** The name that the person has chosen, if the service sends one with a press. */
  readonly name: string;
  /** When the service signs the request. */
  readonly sentAt: Date;
  /** Whether the request is signed with a secret that is not the service's. */
  readonly isForged: boolean;
  /**
   * Whether it is pressed in another chat than the one that the message was delivered to, as in a forwarded copy. If the
   * service has no chats, skip the case about it.
   */
  readonly isElsewhere: boolean;
}
