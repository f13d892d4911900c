/** The last step of an acquire: who aborted in the very moment of the grant does not hold (docs/spec.md §2.3). */
export function handOut<L extends AsyncDisposable>(lease: L, signal: AbortSignal | undefined): L {
  if (!signal?.aborted) return lease;
  // In the background: what the caller is told does not wait for it.
  void lease[Symbol.asyncDispose]();
  throw signal.reason;
}
