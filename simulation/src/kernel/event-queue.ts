/** Something that happens at one moment of the simulated time. */
export interface ScheduledEvent {
  /** In milliseconds of true time. */
  readonly at: number;
  /** Events of one moment happen in the order in which they were added. */
  readonly order: number;
  readonly happen: () => void;
  isCancelled: boolean;
}

/** The events to come, the earliest first: a binary heap. */
export class EventQueue {
  readonly #heap: ScheduledEvent[] = [];
  #added = 0;

  get length(): number {
    return this.#heap.length;
  }

  add(at: number, happen: () => void): ScheduledEvent {
    const event: ScheduledEvent = { at, order: this.#added, happen, isCancelled: false };
    this.#added += 1;
    const heap = this.#heap;
    let place = heap.length;
    heap.push(event);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      const above = heap[parent] as ScheduledEvent;
      if (!isBefore(event, above)) break;
      heap[place] = above;
      place = parent;
    }
    heap[place] = event;
    return event;
  }

  /** Takes the earliest event that was not cancelled. */
  take(): ScheduledEvent | undefined {
    for (let first = this.#takeFirst(); first !== undefined; first = this.#takeFirst()) {
      if (!first.isCancelled) return first;
    }
    return undefined;
  }

  #takeFirst(): ScheduledEvent | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (last === undefined || last === first) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as ScheduledEvent)) child += 1;
      const below = heap[child] as ScheduledEvent;
      if (!isBefore(below, last)) break;
      heap[place] = below;
      place = child;
    }
    heap[place] = last;
    return first;
  }
}

function isBefore(a: ScheduledEvent, b: ScheduledEvent): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
