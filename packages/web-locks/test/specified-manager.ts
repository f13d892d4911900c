import type { WebLockMode } from '../src/index.ts';

/** A request as the model sees it. */
export interface ModelRequest {
  readonly id: number;
  readonly client: number;
  readonly name: string;
  readonly mode: WebLockMode;
}

/** The lock manager of the specification, step by step as its algorithms say, without anything asynchronous. */
export class SpecifiedManager {
  held: ModelRequest[] = [];
  queue: ModelRequest[] = [];

  /** "Request a lock"; `null` where `ifAvailable` finds it not grantable. */
  request(request: ModelRequest, how: 'plain' | 'ifAvailable' | 'steal'): 'queued' | null {
    if (how === 'steal') {
      this.held = this.held.filter(({ name }) => name !== request.name);
      this.queue.unshift(request);
    } else {
      if (how === 'ifAvailable' && !this.#isGrantable(request)) return null;
      this.queue.push(request);
    }
    this.#process(request.name);
    return 'queued';
  }

  /** "Release the lock", or "abort the request". */
  remove(request: ModelRequest): void {
    this.held = this.held.filter((one) => one !== request);
    this.queue = this.queue.filter((one) => one !== request);
    this.#process(request.name);
  }

  #process(name: string): void {
    for (const request of this.queue.filter((one) => one.name === name)) {
      if (!this.#isGrantable(request)) return;
      this.queue = this.queue.filter((one) => one !== request);
      this.held.push(request);
    }
  }

  #isGrantable(request: ModelRequest): boolean {
    const first = this.queue.find(({ name }) => name === request.name);
    if (first !== undefined && first !== request) return false;
    const holders = this.held.filter(({ name }) => name === request.name);
    return request.mode === 'shared' ? holders.every(({ mode }) => mode === 'shared') : holders.length === 0;
  }
}
