/** A server-sent event as a client sees it. */
export interface ReceivedEvent {
  readonly type: string;
  readonly id: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server sent
  readonly data: any;
}

/** Reads the events of a response, as the standard says (https://html.spec.whatwg.org/#event-stream-interpretation). */
export class EventReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  #text = '';
  #id = '';
  readonly #events: ReceivedEvent[] = [];
  readonly comments: string[] = [];
  retry: number | undefined;

  constructor(response: Response) {
    if (!response.body) throw new Error(`no body: ${response.status}`);
    this.#reader = response.body.getReader();
  }

  /** The id of the last event. */
  get lastId(): string {
    return this.#id;
  }

  /** The next event; undefined at the end. */
  async next(): Promise<ReceivedEvent | undefined> {
    while (this.#events.length === 0) if (!(await this.#read())) return undefined;
    return this.#events.shift();
  }

  /** The next so many events. */
  async take(count: number): Promise<ReceivedEvent[]> {
    const events: ReceivedEvent[] = [];
    while (events.length < count) {
      const event = await this.next();
      if (!event) throw new Error(`the stream has ended after ${JSON.stringify(events)}`);
      events.push(event);
    }
    return events;
  }

  /** Reads to the end. */
  async rest(): Promise<ReceivedEvent[]> {
    const events: ReceivedEvent[] = [];
    for (let event = await this.next(); event; event = await this.next()) events.push(event);
    return events;
  }

  async close(): Promise<void> {
    await this.#reader.cancel().catch(() => undefined);
  }

  async #read(): Promise<boolean> {
    const { done, value } = await this.#reader.read();
    if (done) return false;
    this.#text += this.#decoder.decode(value, { stream: true });
    const blocks = this.#text.split('\n\n');
    this.#text = blocks.pop() ?? '';
    for (const block of blocks) this.#dispatch(block);
    return true;
  }

  #dispatch(block: string): void {
    const fields = new Map<string, string>();
    for (const line of block.split('\n')) {
      if (line.startsWith(':')) this.comments.push(line.slice(1));
      else {
        const [, name = '', value = ''] = /^([^:]*): ?(.*)$/.exec(line) ?? [];
        fields.set(name, value);
      }
    }
    if (fields.has('retry')) this.retry = Number(fields.get('retry'));
    this.#id = fields.get('id') ?? this.#id;
    const data = fields.get('data');
    if (data !== undefined)
      this.#events.push({ type: fields.get('event') ?? 'message', id: this.#id, data: JSON.parse(data) });
  }
}
