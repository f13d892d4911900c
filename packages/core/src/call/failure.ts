/** A call that failed, as a value: what its promise rejected with, or what it threw. */
export class Failure {
  readonly status = 'failed';
  readonly error: unknown;

  constructor(error: unknown) {
    this.error = error;
  }
}
