/** One message between a process and a store. */
export interface DrawnMessage {
  readonly from: string;
  readonly to: string;
  /** True times in milliseconds. */
  readonly sentAt: number;
  readonly at: number;
}

/** What lasts for a while in one lane. */
export interface DrawnSpan {
  readonly kind: 'hold' | 'pause';
  readonly who: string;
  readonly what: string;
  readonly from: number;
  to: number | undefined;
}

/** What a picture shows beside the lines of the timeline. */
export class Drawing {
  readonly messages: DrawnMessage[] = [];
  readonly spans: DrawnSpan[] = [];
  readonly #open = new Map<unknown, DrawnSpan>();

  /** @param key - what {@link end} names */
  begin(key: unknown, kind: DrawnSpan['kind'], who: string, what: string, from: number): void {
    const span: DrawnSpan = { kind, who, what, from, to: undefined };
    this.spans.push(span);
    this.#open.set(key, span);
  }

  end(key: unknown, at: number): void {
    const span = this.#open.get(key);
    if (span !== undefined) span.to = at;
    this.#open.delete(key);
  }
}
