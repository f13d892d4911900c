import type { AcquireRequest, Call, LockBackend } from '@locks/core/backend';
import { poll } from './poll-nodes.ts';

/** Calls of single nodes that go on whether the caller of the quorum waits or not. No node is called after `close` (docs/spec.md §12.4). */
export class BackgroundCalls {
  readonly #limitMs: number;
  readonly #running = new Set<Promise<void>>();
  #closed = false;

  /** @param limitMs - how long a node has for an answer */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /** Abandons a request on one node. Where the abandon fails, the grant ends by its ttl. */
  abandon(node: LockBackend, request: AcquireRequest, caller: Call): Promise<void> {
    return this.ask(node, caller, async (nodeCall) => node.abandon(request, nodeCall));
  }

  /**
   * Calls one node. `settle` gets the answer, also one after the time that the node has; `undefined` for an error.
   *
   * @returns the end of the call, or of that time; never rejects
   */
  ask<T>(
    node: LockBackend,
    caller: Call,
    ask: (call: Call) => Promise<T>,
    settle: (answer: T | undefined) => void = () => undefined,
  ): Promise<void> {
    if (this.#closed) return Promise.resolve();
    const call = { now: () => caller.now(), deadline: caller.now() + this.#limitMs };
    const running = poll<void, true>(
      [node],
      this.#limitMs,
      call,
      async (_node, nodeCall) => settle(await ask(nodeCall).catch(() => undefined)),
      () => true,
    )
      .catch(() => true)
      .then(() => void this.#running.delete(running));
    this.#running.add(running);
    return running;
  }

  /** Waits for the calls that are under way, none of which lasts longer than a node's answer may take. */
  async close(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
    this.#closed = true;
  }
}
