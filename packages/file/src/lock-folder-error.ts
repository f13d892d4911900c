/** The kind of failure of the folder of the locks. */
export type LockFolderErrorCode =
  /** The disk, its quota or a size limit is full. */
  | 'FULL'
  /** The folder, or something in it, cannot be written by this process. */
  | 'READ_ONLY'
  /** The path is no folder. */
  | 'NOT_A_FOLDER'
  /** The folder belongs to another user, and `shared` is not set. */
  | 'FOREIGN_OWNER'
  /** The file system is one of a network. */
  | 'NETWORK'
  /** Another machine, or another kernel, uses the folder. */
  | 'TWO_MACHINES'
  /** The file system has no names of {@link LONGEST_NAME} characters. */
  | 'NAMES_TOO_SHORT'
  /** The value of a record was deleted by something else, and its holds may not have ended; or a slot was damaged. */
  | 'VALUE_MISSING'
  /** The system does not say which boot this is. */
  | 'NO_BOOT_ID';

/** A failure of the folder of the locks, explained in words; `cause` is the error of the file system, where there is one. */
export class LockFolderError extends Error {
  override readonly name = 'LockFolderError';
  /** The kind of failure of the folder. */
  readonly code: LockFolderErrorCode;

  constructor(code: LockFolderErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** The longest name of a file that this package makes. */
export const LONGEST_NAME = 140;

const FULL = [
  'FULL',
  'it cannot grow: the disk, its quota or a size limit is full. Free some space',
] as const;
const READ_ONLY = [
  'READ_ONLY',
  'it cannot be written: check the permissions of the folder and of all in it, or use the option `shared` in all processes',
] as const;
const NOT_A_FOLDER = ['NOT_A_FOLDER', 'it is no folder. Choose another path'] as const;

const KNOWN: Readonly<Record<string, readonly [LockFolderErrorCode, string]>> = {
  ENOSPC: FULL,
  EDQUOT: FULL,
  EFBIG: FULL,
  EROFS: READ_ONLY,
  EACCES: READ_ONLY,
  EPERM: READ_ONLY,
  ENOTDIR: NOT_A_FOLDER,
  EEXIST: NOT_A_FOLDER,
  ENAMETOOLONG: [
    'NAMES_TOO_SHORT',
    `its file system has no names of ${LONGEST_NAME} characters. Choose a folder on another disk`,
  ],
};
/** Errors that pass: on Windows a virus scanner has a file open for a moment. */
const RETRYABLE = new Set(['EAGAIN', 'EBUSY', 'EINTR', 'EIO', 'EMFILE', 'ENFILE', 'ENOENT', 'ESTALE']);
const RETRYABLE_ON_WINDOWS = new Set(['EACCES', 'EPERM']);

export function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException | null)?.code ?? '';
}

/** The error to throw: it says what to do about the folder. */
export function explained(error: unknown, folder: string): unknown {
  const [code, says] = KNOWN[codeOf(error)] ?? [];
  if (code === undefined || error instanceof LockFolderError || isRetryableFileError(error)) return error;
  return new LockFolderError(code, `folder of locks ${folder}: ${says}`, { cause: error });
}

/** Whether the same call may succeed if repeated. */
export function isRetryableFileError(error: unknown): boolean {
  const code = codeOf(error);
  return RETRYABLE.has(code) || (process.platform === 'win32' && RETRYABLE_ON_WINDOWS.has(code));
}
