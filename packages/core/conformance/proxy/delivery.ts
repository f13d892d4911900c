import type { Socket } from 'node:net';

export interface DeliveryRules {
  latencyMs(): number;
  /** Whether data is dropped for good. */
  swallows(): boolean;
  /** Whether data is held back until the stall ends. */
  stalls(): boolean;
}

/** One direction of a connection: delivers data in order, at once, late, after a stall, or never. */
export class Delivery {
  /** Set once data was dropped: the receiver could not understand later data. */
  damaged = false;
  readonly #to: Socket;
  readonly #rules: DeliveryRules;
  readonly #queue: { data: Buffer | 'end'; due: number }[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(to: Socket, rules: DeliveryRules) {
    this.#to = to;
    this.#rules = rules;
  }

  pass(data: Buffer | 'end'): void {
    if (this.damaged || this.#rules.swallows()) {
      this.damaged = true;
      return;
    }
    const latest = this.#queue.at(-1)?.due ?? 0;
    this.#queue.push({ data, due: Math.max(latest, performance.now() + this.#rules.latencyMs()) });
    this.#deliver();
  }

  /** Delivers all late and stalled data now, at the end of the faults. */
  flush(): void {
    for (const item of this.#queue) item.due = 0;
    this.#deliver();
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#queue.length = 0;
  }

  #deliver(): void {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = undefined;
    while (!this.#rules.stalls()) {
      const next = this.#queue[0];
      if (!next) return;
      const waitMs = next.due - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => {
          this.#deliver();
        }, Math.ceil(waitMs));
        return;
      }
      this.#queue.shift();
      if (next.data === 'end') this.#to.end();
      else if (this.#to.writable) this.#to.write(next.data);
    }
  }
}
