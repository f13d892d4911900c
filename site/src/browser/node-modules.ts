/** What `@locks/core` and `@locks/memory` import of Node, for a page: the playground runs the packages themselves. */

type Subscriber = (message: unknown, name: string) => void;

/** `node:diagnostics_channel`: nobody subscribes in a page. */
export function channel(name: string): object {
  return { name, hasSubscribers: false, publish() {}, subscribe() {}, unsubscribe: () => false };
}

export function tracingChannel(name: string): object {
  return { start: channel(name), hasSubscribers: false, tracePromise: (call: () => unknown) => call() };
}

export function subscribe(_name: string, _subscriber: Subscriber): void {}

export function unsubscribe(_name: string, _subscriber: Subscriber): boolean {
  return false;
}

/** `node:os` */
export function hostname(): string {
  return 'page';
}

/** `node:util` */
export const inspect: { readonly custom: symbol } = { custom: Symbol.for('nodejs.util.inspect.custom') };

/** `node:crypto` */
export function randomBytes(size: number): { toString(encoding: 'base64url'): string } {
  const bytes = crypto.getRandomValues(new Uint8Array(size));
  return {
    toString: () =>
      btoa(String.fromCharCode(...bytes))
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replaceAll('=', ''),
  };
}

/** `node:async_hooks`: a page has no asynchronous context, so `run` lasts for the call alone; the playground has no reentrant lock. */
export class AsyncLocalStorage<T> {
  #store: T | undefined;

  getStore(): T | undefined {
    return this.#store;
  }

  run<R>(store: T, work: () => R): R {
    const before = this.#store;
    this.#store = store;
    try {
      return work();
    } finally {
      this.#store = before;
    }
  }
}

/** `node:buffer`, and the global. */
export const Buffer: { byteLength(text: string): number } = {
  byteLength: (text) => new TextEncoder().encode(text).length,
};
