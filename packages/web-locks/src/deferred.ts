/** A promise that is resolved from outside, and knows whether it was. */
export interface Deferred {
  readonly promise: Promise<void>;
  readonly isResolved: boolean;
  resolve(): void;
}

export function makeDeferred(): Deferred {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => (resolve = done));
  const deferred = {
    promise,
    isResolved: false,
    resolve(): void {
      deferred.isResolved = true;
      resolve();
    },
  };
  return deferred;
}
