import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../launcher/root.mjs';
import { runCommand } from './command.ts';

export interface NodeVersion {
  readonly version: string;
  readonly executable: string;
}

/** The Nodes that users may have, the oldest that the packages support first, and the folders whose packages bring them. */
const FOLDERS = { 20: 'scripts', 22: 'contract-tests', 24: '.', 26: 'contract-tests' };

/** One Node of each major version; the host's where it is of another. Throws when one is missing. */
export async function nodesOfUsers(): Promise<readonly NodeVersion[]> {
  const own = Object.entries(FOLDERS).map(([major, folder]) =>
    join(root, folder, `node_modules/node${major}-${process.platform}-${process.arch}/bin/node`),
  );
  const found = new Map<string, NodeVersion>();
  for (const executable of [...own, process.execPath, process.env['LOCKS_HOST_NODE'] ?? '']) {
    if (!existsSync(executable)) continue;
    const version = (await runCommand(executable, ['--version'])).stdout.trim();
    const major = version.slice(1).split('.', 1)[0] ?? '';
    if (!found.has(major)) found.set(major, { version, executable });
  }
  const missing = Object.keys(FOLDERS).filter((major) => !found.has(major));
  if (missing.length > 0)
    throw new Error(
      `Node ${missing.join(', ')} not found: the optional dependencies node<major>-${process.platform}-${process.arch} bring them.`,
    );
  return [...found.values()];
}
