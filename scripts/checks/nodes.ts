import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { root } from '../launcher/root.mjs';
import { runCommand } from './command.ts';

export interface NodeVersion {
  readonly version: string;
  readonly executable: string;
}

/** The oldest Node that the packages support comes first; the even ones after it follow. */
const neededMajors = [20, 22, 24, 26];

/** The Nodes that users may have: those of the workspace, and the host's. Throws when one is missing. */
export async function nodesOfUsers(): Promise<readonly NodeVersion[]> {
  const host = process.env['LOCKS_HOST_NODE'];
  const candidates = [
    fromPackage('scripts', 20),
    fromPackage('contract-tests', 22),
    process.execPath,
    fromPackage('contract-tests', 26),
    host,
  ];
  const found = new Map<string, NodeVersion>();
  for (const executable of candidates) {
    if (!executable) continue;
    const { ok, stdout } = await runCommand(executable, ['--version']);
    const version = stdout.trim();
    if (ok && !found.has(version)) found.set(version, { version, executable });
  }
  const missing = neededMajors.filter(
    (major) => ![...found.keys()].some((version) => version.startsWith(`v${major}.`)),
  );
  if (missing.length > 0) {
    throw new Error(
      `Node ${missing.join(', ')} not found: the optional dependencies node<major>-${process.platform}-${process.arch} of ` +
        'scripts/ and contract-tests/ bring them; the host had none of that version either.',
    );
  }
  return [...found.values()];
}

function fromPackage(workspaceFolder: string, major: number): string | undefined {
  const name = `node${major}-${process.platform}-${process.arch}`;
  try {
    const manifest = createRequire(join(root, workspaceFolder, 'package.json')).resolve(
      `${name}/package.json`,
    );
    const executable = join(dirname(manifest), 'bin/node');
    return existsSync(executable) ? executable : undefined;
  } catch {
    return undefined;
  }
}
