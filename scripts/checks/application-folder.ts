import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostPath } from '../launcher/environment.mjs';
import { root } from '../launcher/root.mjs';
import { must } from './command.ts';
import { packedPackages } from './packed.ts';

const source = join(root, 'scripts/applications');
const made = new Map<string, Promise<string>>();

/**
 * A folder with the applications of scripts/applications/, the packed packages, and what `manifests/<name>.json` asks the
 * registry for. The last is installed once for a manifest and kept in .tools/; the others are new in each run.
 */
export function applicationFolder(name: 'tools' | 'next' | 'old-clients' | 'orms'): Promise<string> {
  const folder = made.get(name) ?? makeFolder(name);
  made.set(name, folder);
  return folder;
}

async function makeFolder(name: string): Promise<string> {
  const folder = join(root, '.tools/applications', name);
  const packages = await packedPackages();
  await installManifest(name, folder);
  for (const { manifest, tarball } of packages) {
    const target = join(folder, 'node_modules', manifest.name);
    rmSync(target, { recursive: true, force: true });
    mkdirSync(target, { recursive: true });
    await must('tar', ['-xzf', tarball, '--strip-components=1', '-C', target]);
  }
  cpSync(source, folder, { recursive: true });
  cpSync(join(root, 'scripts/consumer/harness.mjs'), join(folder, 'harness.mjs'));
  return folder;
}

/** Installs what `manifests/<name>.json` asks for, unless the folder has just that. */
export async function installManifest(name: string, folder: string): Promise<void> {
  const manifest = readFileSync(join(source, 'manifests', `${name}.json`), 'utf8');
  const stamp = join(folder, '.installed');
  const wanted = createHash('sha256')
    .update(`${process.platform} ${process.arch}\n${manifest}`)
    .digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), manifest);
  const quiet = ['--no-audit', '--no-fund', '--loglevel=error'];
  const env = { ...process.env, PATH: hostPath() };
  await must('npm', ['install', ...quiet, '--prefer-offline', '--ignore-scripts'], { cwd: folder, env });
  writeFileSync(stamp, wanted);
}
