import type { Socket } from 'node:net';

export interface DeliveryRules {
  latencyMs(): number;
  /** Swallowed now and for ever. */
  swallows(): boolean;
  /** Held back until it is over. */
  stalls(): boolean;
}

/** One direction of a connection: passes data on in order, late, not yet, or never. */
export class Delivery {
  /** Something was swallowed: what would follow makes no sense to the receiver. */
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

  /** The faults are over: everything that was late or held back goes out now. */
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
