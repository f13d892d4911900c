import type { LockMode } from '../src/backend/types.ts';

/** An acquisition in the model, identified by the label under which the store shows it. */
export interface Modelled {
  readonly label: string;
  mode: LockMode;
}

/** The state that a resource must have after each step: strict order over all modes (docs/spec.md §15). */
export class ResourceModel {
  holders: Modelled[] = [];
  queue: Modelled[] = [];

  /** Whether a single attempt must be granted. */
  tries(asked: Modelled): boolean {
    if (this.queue.length > 0 || !this.#fits(asked.mode)) return false;
    this.holders.push(asked);
    return true;
  }

  /** Grants the acquisition or puts it into the queue. */
  enqueues(asked: Modelled): void {
    if (!this.tries(asked)) this.queue.push(asked);
  }

  /** Ends all holds, and grants ahead of the queue; not if what waits contradicts it. */
  steals(asked: Modelled): boolean {
    const [head] = this.queue;
    if (head !== undefined && limitOf(head.mode) !== limitOf(asked.mode)) return false;
    this.holders = [asked];
    this.#serve();
    return true;
  }

  /** Ends a hold or a wait. */
  leaves(label: string): void {
    this.holders = this.holders.filter((one) => one.label !== label);
    this.queue = this.queue.filter((one) => one.label !== label);
    this.#serve();
  }

  downgrades(label: string): void {
    for (const one of this.holders) {
      if (one.label === label && one.mode.kind === 'exclusive') one.mode = { kind: 'shared' };
    }
    this.#serve();
  }

  resizes(limit: number): void {
    for (const one of [...this.holders, ...this.queue]) {
      if (one.mode.kind === 'permit') one.mode = { ...one.mode, limit };
    }
    this.#serve();
  }

  /** Whether a newcomer of this mode is refused, whoever leaves. */
  conflicts(asked: LockMode): boolean {
    const living = (this.holders[0] ?? this.queue[0])?.mode ?? asked;
    return limitOf(living) !== limitOf(asked);
  }

  #serve(): void {
    for (let [head] = this.queue; head !== undefined && this.#fits(head.mode); [head] = this.queue) {
      this.queue.shift();
      this.holders.push(head);
    }
  }

  #fits(mode: LockMode): boolean {
    switch (mode.kind) {
      case 'exclusive':
        return this.holders.length === 0;
      case 'shared':
        return this.holders.every((one) => one.mode.kind === 'shared');
      case 'permit': {
        const weights = this.holders.map((one) => (one.mode.kind === 'permit' ? one.mode.weight : Infinity));
        return weights.reduce((sum, weight) => sum + weight, mode.weight) <= mode.limit;
      }
      default:
        return mode satisfies never;
    }
  }
}

/** A lock has the limit 0. */
function limitOf(mode: LockMode): number {
  return mode.kind === 'permit' ? mode.limit : 0;
}
