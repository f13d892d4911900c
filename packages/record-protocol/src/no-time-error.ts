/** The answers of the store tell no time by which a hold could end. */
export class NoTimeError extends Error {
  override readonly name = 'NoTimeError';
  readonly code = 'NO_TIME';

  constructor(store: string) {
    super(
      `the answers of ${store} tell no time by which the lock of a dead holder could end: pass { expiry: 'observed' } to its backend, ` +
        'in all processes, or see what stands between and removes or caches the time',
    );
  }
}
