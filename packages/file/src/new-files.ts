import { randomBytes } from 'node:crypto';
import { chmodSync, fchmodSync, mkdirSync, openSync } from 'node:fs';
import { processMark } from './process-mark.ts';

/** A name that nothing else has. It begins with the mark of this process: what is left of it is deleted once the process has ended. */
export function newName(): string {
  return `${processMark()}-${randomBytes(6).toString('hex')}`;
}

/**
 * @param mayExist - whether it may be there, or those above it not
 * @returns the first of the folders that were missing
 */
export function makeFolder(path: string, isShared: boolean, mayExist: boolean): string | undefined {
  const first = mkdirSync(path, { recursive: mayExist });
  if (isShared && (first !== undefined || !mayExist)) chmodSync(path, 0o777);
  return first;
}

/** Makes a file and opens it. */
export function makeFile(path: string, isShared: boolean): number {
  const file = openSync(path, 'wx+');
  if (isShared) fchmodSync(file, 0o666);
  return file;
}
