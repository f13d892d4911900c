/** A call that threw. */
export interface Failure {
  readonly status: 'failed';
  readonly error: unknown;
}

export function asFailure(error: unknown): Failure {
  return { status: 'failed', error };
}

export function isFailure(answer: unknown): answer is Failure {
  return (answer as Partial<Failure> | null | undefined)?.status === 'failed';
}

/** A backend may throw before it gives a promise, and may give its answer without one. */
export function asked<T>(call: () => T | Promise<T>): Promise<T> {
  try {
    return Promise.resolve(call());
  } catch (error) {
    return Promise.reject(error);
  }
}
