import { accessSync, constants, existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from './usage-error.ts';

type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The URL of the folder with the locks of this user on this machine: the same in a shell, in cron and in an editor. A folder of the login
 * (`XDG_RUNTIME_DIR`) or for temporary files would be another one in each.
 */
export function userFolderUrl(variables: Variables = process.env, platform = process.platform): string {
  const { XDG_STATE_HOME: state = '', LOCALAPPDATA: local = '' } = variables;
  const home = homedir();
  const own: Readonly<Record<string, string>> = {
    darwin: join(home, 'Library', 'Application Support'),
    win32: local === '' ? join(home, 'AppData', 'Local') : local,
  };
  // The specification of XDG says that a relative path is ignored.
  const parent = isAbsolute(state) ? state : (own[platform] ?? join(home, '.local', 'state'));
  return pathToFileURL(join(parent, 'locks')).href;
}

/**
 * The URL of the folder with the locks of all users of this machine, who all may write it.
 *
 * @throws UsageError where it is missing and this user may not make it
 */
export function machineFolderUrl(variables: Variables = process.env, platform = process.platform): string {
  const parents: Readonly<Record<string, string>> = {
    darwin: '/Library/Application Support',
    win32: variables['PROGRAMDATA'] ?? 'C:\\ProgramData',
  };
  const folder = join(parents[platform] ?? '/var/lib', 'locks');
  if (!existsSync(folder) && !mayWrite(dirname(folder)))
    throw new UsageError(
      `--machine: there is no ${folder}, and this user may not make it: an administrator runs \`locks prepare --machine\` once`,
    );
  return `${pathToFileURL(folder).href}?shared=true`;
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
