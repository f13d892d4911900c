/** The lock file, as the processes name it. */
export const LOCK_FILE = '/locks.db';

/** As `node:fs` throws it. */
export function systemError(code: string, call: string): Error {
  return Object.assign(new Error(`${code}: ${call}`), { code, syscall: call });
}

/** As `node:sqlite` throws it. */
export function sqliteError(errcode: number, errstr: string): Error {
  return Object.assign(new Error(errstr), { code: 'ERR_SQLITE_ERROR', errcode, errstr });
}
