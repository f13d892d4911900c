/** The globals of Node that `@locks/core` and `@locks/memory` use, for a page: timers there are objects. */

/** A timer of a page, with the methods of one of Node. */
class PageTimer {
  readonly id: number;

  constructor(id: number) {
    this.id = id;
  }

  unref(): this {
    return this;
  }
}

export function setTimeout(work: () => void, ms?: number): PageTimer {
  return new PageTimer(globalThis.setTimeout(work, ms) as unknown as number);
}

export function setInterval(work: () => void, ms?: number): PageTimer {
  return new PageTimer(globalThis.setInterval(work, ms) as unknown as number);
}

export function clearTimeout(timer: PageTimer | undefined): void {
  globalThis.clearTimeout(timer?.id);
}

export function clearInterval(timer: PageTimer | undefined): void {
  globalThis.clearInterval(timer?.id);
}

export function setImmediate(work: () => void): PageTimer {
  return setTimeout(work, 0);
}

export const process: {
  readonly pid: number;
  readonly versions: { readonly node: string };
  nextTick(work: () => void): void;
  emitWarning(text: string): void;
} = {
  pid: 1,
  // A page carries no asynchronous context.
  versions: { node: '0' },
  nextTick: (work) => queueMicrotask(work),
  emitWarning: (text) => console.warn(text),
};
