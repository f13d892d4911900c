import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** PostgreSQL, MariaDB and PgBouncer refuse to run as root: they get the user who owns nothing. */
const USER = 'nobody';

const isRoot = process.getuid?.() === 0;

/** A program and its arguments, to be run by an unprivileged user. */
export function unprivileged(
  command: string,
  args: readonly string[],
): { readonly command: string; readonly args: readonly string[] } {
  if (!isRoot) return { command, args };
  // setpriv becomes the program: the pid that the guardian knows is the server's.
  return {
    command: 'setpriv',
    args: [`--reuid=${USER}`, '--regid=nogroup', '--clear-groups', '--', command, ...args],
  };
}

/** Lets the unprivileged user write a directory. */
export async function giveAway(directory: string): Promise<void> {
  if (isRoot) await promisify(execFile)('chown', ['-R', USER, directory]);
}
