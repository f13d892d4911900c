/** Disturbs the thread that loads a module as the query of its URL says: `?throws=500`, `?exits=500`, `?hangs=500`, after so many milliseconds. */
export function disturb(url: string): void {
  for (const [how, ms] of new URL(url).searchParams) {
    setTimeout(() => {
      if (how === 'throws') throw new Error('thrown on purpose');
      if (how === 'exits') process.exit(7);
      if (how === 'hangs') block(Number.POSITIVE_INFINITY);
    }, Number(ms));
  }
}

/** Blocks the event loop of this thread. */
export function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}
