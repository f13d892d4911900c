/** The kind of failure of a lockfile, with the names of proper-lockfile. */
export type LockfileErrorCode =
  /** Somebody holds the lock. */
  | 'ELOCKED'
  /** This process does not hold the lock. */
  | 'ENOTACQUIRED'
  /** The lock was released before. */
  | 'ERELEASED'
  /** The lock was lost while it was held. */
  | 'ECOMPROMISED'
  /** A function without a promise cannot wait. */
  | 'ESYNC';

/** A failure of a lockfile; `cause` is the error of the file system, where there is one. */
export class LockfileError extends Error {
  override readonly name = 'LockfileError';
  /** The kind of failure. */
  readonly code: LockfileErrorCode;
  /** The file that was to be locked, where it is known. */
  readonly file: string | undefined;

  constructor(code: LockfileErrorCode, message: string, file?: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.file = file;
  }
}
