import type { Principal } from '../../../../core/approval/principal.ts';
import { personKey } from '../../../../core/approval/rule.ts';
import type { ApprovalService } from '../../../../core/approval/service.ts';
import { onAbort } from '../../../../core/on-abort.ts';
import type { NumberedChange } from '../../approval-changes.ts';
import type { ApprovalWatcher, ChangeSubscription } from '../../approval-watcher.ts';
import { type HttpError, streamResponse } from '../response.ts';

const MAX_STREAMS = 2_000;
const MAX_PER_PERSON = 20;
/** With more characters that a client has not read, its stream ends. */
const MAX_UNREAD = 256 * 1024;
/** With more characters of changes that it missed, it lists the requests instead. */
const MAX_REPLAY = MAX_UNREAD / 4;
/** Proxies end connections on which nothing is sent. */
const KEEP_ALIVE_MS = 15_000;
/** A person is verified again with every so many comments. */
const VERIFY_EVERY = 3;
const RETRY_MS = 3_000;
/** A page that shows many requests is notified of changes no more often than this. */
const SIGNAL_MS = 1_300;
const RETRY_AFTER = { 'retry-after': '5' };

const TOO_MANY: HttpError = {
  status: 503,
  error: 'too_many_streams',
  message: `This server has ${MAX_STREAMS} event streams, and no more.`,
  headers: RETRY_AFTER,
};
const TOO_MANY_OF_PERSON: HttpError = {
  status: 429,
  error: 'too_many_streams',
  message: `A person has at most ${MAX_PER_PERSON} event streams on a server.`,
  headers: RETRY_AFTER,
};
const STOPPING: HttpError = {
  status: 503,
  error: 'server_stopping',
  message: 'The server is stopping.',
  headers: RETRY_AFTER,
};

interface Source {
  readonly approvals: ApprovalService;
  readonly watcher: ApprovalWatcher;
  readonly stopping?: AbortSignal | undefined;
}

interface StreamVisitor {
  readonly principal: Principal;
  /** Whether they are still let in. */
  isAllowed(): Promise<boolean>;
}

/** What is written to a stream. */
interface Writer {
  begin(subscription: ChangeSubscription): void;
  onChange(numbered: NumberedChange): unknown;
  onOutage?(isDown: boolean): void;
}

/** Server-sent events of the changes of requests. */
export class EventStreams {
  readonly #source: Source;
  /** How many each person has open. */
  readonly #open = new Map<string, number>();
  #total = 0;
  readonly #lists = new ListSignals();

  constructor(source: Source) {
    this.#source = source;
  }

  /** A stream of all changes, for as long as `isAllowed` says so. Throws an `HttpError` and store errors. */
  open(request: Request, visitor: StreamVisitor): Promise<Response> {
    return this.#start(request, visitor, (stream) => ({
      begin({ missed, lastId }) {
        const replay = missed?.map(eventText).join('');
        const isShort = replay !== undefined && replay.length <= MAX_REPLAY;
        stream.write(isShort ? replay : `id: ${lastId}\nevent: sync\ndata: {"type":"sync"}\n\n`);
      },
      onChange: (numbered) => stream.write(eventText(numbered)),
    }));
  }

  /**
   * As `open`, for a page: it only says that a request has changed; without an id, that some have, once a second. And that
   * the store does not answer, until it does.
   */
  openPage(request: Request, visitor: StreamVisitor, requestId?: string): Promise<Response> {
    const signal = (stream: EventStream, id: string) => stream.write(`id: ${id}\n${pageEvent('changed')}`);
    const isShown = ({ change }: NumberedChange) => change.requestId === requestId;
    return this.#start(request, visitor, (stream) => {
      const writer: Writer =
        requestId === undefined
          ? this.#lists.open(stream, (id) => signal(stream, id))
          : {
              begin({ missed, lastId }) {
                if (!missed || missed.some(isShown)) signal(stream, lastId);
              },
              onChange: (numbered) => isShown(numbered) && signal(stream, numbered.id),
            };
      return { ...writer, onOutage: (isDown) => stream.write(pageEvent(isDown ? 'outage' : 'changed')) };
    });
  }

  async #start(
    request: Request,
    { principal, isAllowed }: StreamVisitor,
    writerOf: (stream: EventStream) => Writer,
  ): Promise<Response> {
    const { approvals, watcher, stopping } = this.#source;
    const ends = [approvals.closing, ...(stopping ? [stopping] : [])];
    if (ends.some(({ aborted }) => aborted)) throw STOPPING;
    const release = this.#reserve(personKey(principal));
    const stream = new EventStream(release);
    const writer = writerOf(stream);
    let subscription: ChangeSubscription;
    try {
      const lastId = request.headers.get('last-event-id') ?? undefined;
      subscription = await watcher.subscribe(writer.onChange, lastId);
    } catch (error) {
      release();
      throw error;
    }
    stream.onEnd(subscription.unsubscribe);
    for (const signal of ends) stream.onEnd(onAbort(signal, () => stream.end()));
    stream.onEnd(onAbort(request.signal, () => stream.close()));
    stream.write(`retry: ${RETRY_MS}\n\n`);
    writer.begin(subscription);
    if (writer.onOutage) stream.onEnd(watcher.onOutage(writer.onOutage));
    keepAlive(stream, isAllowed);
    if (request.signal.aborted) stream.close();
    if (ends.some(({ aborted }) => aborted)) stream.end();
    return streamResponse(stream.body);
  }

  /** Counts a stream. Returns what it calls once when it ends. Throws an `HttpError`. */
  #reserve(person: string): () => void {
    const own = this.#open.get(person) ?? 0;
    if (own >= MAX_PER_PERSON) throw TOO_MANY_OF_PERSON;
    if (this.#total >= MAX_STREAMS) throw TOO_MANY;
    this.#total += 1;
    this.#open.set(person, own + 1);
    return () => {
      this.#total -= 1;
      const left = (this.#open.get(person) ?? 1) - 1;
      if (left === 0) this.#open.delete(person);
      else this.#open.set(person, left);
    };
  }
}

/** Ends the stream when it is no longer allowed, or nobody can say: the client may connect again. */
function keepAlive(stream: EventStream, isAllowed: () => Promise<boolean>): void {
  let comments = 0;
  const timer = setInterval(() => {
    stream.write(':\n\n');
    comments += 1;
    if (comments % VERIFY_EVERY > 0) return;
    isAllowed().then(
      (allowed) => !allowed && stream.end(),
      () => stream.end(),
    );
  }, KEEP_ALIVE_MS);
  timer.unref();
  stream.onEnd(() => clearInterval(timer));
}

/** Signals to the pages of lists: at the first change, and then at most once in `SIGNAL_MS`, after the last change too. */
class ListSignals {
  /** Of the last change. */
  #lastId = '';
  /** What signals to those that wait for the next change. */
  readonly #idle = new Set<() => void>();

  /** One function for all pages: the watcher calls it once for a change. */
  readonly #onChange = ({ id }: NumberedChange): void => {
    this.#lastId = id;
    for (const signal of this.#idle) signal();
  };

  open(stream: EventStream, write: (id: string) => void): Writer {
    let timer: NodeJS.Timeout | undefined;
    const signal = () => {
      const id = this.#lastId;
      this.#idle.delete(signal);
      write(id);
      timer = setTimeout(() => (id === this.#lastId ? this.#idle.add(signal) : signal()), SIGNAL_MS);
      timer.unref();
    };
    stream.onEnd(() => {
      clearTimeout(timer);
      this.#idle.delete(signal);
    });
    return {
      begin: ({ missed, lastId }) => {
        this.#lastId = lastId;
        if (!missed || missed.length > 0) signal();
        else this.#idle.add(signal);
      },
      onChange: this.#onChange,
    };
  }
}

const pageEvent = (name: 'changed' | 'outage'): string => `event: ${name}\ndata: {}\n\n`;

function eventText({ id, change }: NumberedChange): string {
  return `id: ${id}\nevent: ${change.type}\ndata: ${JSON.stringify(change)}\n\n`;
}

/** The body of one response. It ends if more is unread than `MAX_UNREAD`: the client may connect again. */
class EventStream {
  readonly body: ReadableStream<Uint8Array>;
  readonly #onClosed: () => void;
  readonly #endings = new Set<() => void>();
  #unread = '';
  #hasEnded = false;
  #isClosed = false;
  #wake = () => {};

  /** Calls `onClosed` once the client has read the end or is gone: until then, it has a connection. */
  constructor(onClosed: () => void) {
    this.#onClosed = onClosed;
    const encoder = new TextEncoder();
    let isCancelled = false;
    this.body = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          if (this.#unread === '' && !this.#hasEnded) {
            await new Promise<void>((resolve) => {
              this.#wake = resolve;
            });
          }
          if (isCancelled) return;
          const text = this.#unread;
          this.#unread = '';
          if (text !== '') return controller.enqueue(encoder.encode(text));
          controller.close();
          this.close();
        },
        cancel: () => {
          isCancelled = true;
          this.close();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** Calls `ending` at the end. */
  onEnd(ending: () => void): void {
    if (this.#hasEnded) ending();
    else this.#endings.add(ending);
  }

  write(text: string): void {
    if (this.#hasEnded) return;
    this.#unread += text;
    if (this.#unread.length > MAX_UNREAD) {
      this.#unread = '';
      this.end();
    }
    this.#wake();
  }

  end(): void {
    this.#hasEnded = true;
    for (const ending of this.#endings) ending();
    this.#endings.clear();
    this.#wake();
  }

  /** The client is gone. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#unread = '';
    this.end();
    this.#onClosed();
  }
}
