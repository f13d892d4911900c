import type { LockMode } from '../backend/types.ts';

/** An acquisition as the model sees it: its name is the label under which the store shows it. */
export interface Modelled {
  readonly label: string;
  mode: LockMode;
}

/** What a resource must look like after each step: strict order over all modes (docs/spec.md §15). */
export class ResourceModel {
  holders: Modelled[] = [];
  queue: Modelled[] = [];

  /** What a single attempt must give. */
  tries(asked: Modelled): boolean {
    if (this.queue.length > 0 || !this.#fits(asked.mode)) return false;
    this.holders.push(asked);
    return true;
  }

  /** Grants, or queues. */
  enqueues(asked: Modelled): void {
    if (!this.tries(asked)) this.queue.push(asked);
  }

  /** Ends a hold or a wait. */
  leaves(label: string): void {
    this.holders = this.holders.filter((one) => one.label !== label);
    this.queue = this.queue.filter((one) => one.label !== label);
    this.#serve();
  }

  downgrades(label: string): void {
    for (const one of this.holders) if (one.label === label) one.mode = { kind: 'shared' };
    this.#serve();
  }

  resizes(limit: number): void {
    for (const one of [...this.holders, ...this.queue]) {
      if (one.mode.kind === 'permit') one.mode = { ...one.mode, limit };
    }
    this.#serve();
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
        const weights = this.holders.map((one) => (one.mode.kind === 'permit' ? one.mode.weight : 0));
        return weights.reduce((sum, weight) => sum + weight, mode.weight) <= mode.limit;
      }
      default:
        return mode satisfies never;
    }
  }
}
