import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { NativeLibrary } from '@locks/zookeeper/native';

const root = fileURLToPath(new URL('../../../../', import.meta.url));
const installed = path.join(root, 'packages/zookeeper/node_modules/zookeeper');
/** The packages that the build and the library need. */
const DEPENDENCIES = ['async', 'nan', 'node-gyp-build', 'shelljs', 'tar'];
const BUILD_MS = 300_000;

/**
 * The class that the package `zookeeper` exports. It has no binary for Linux and is installed here without its build:
 * it is compiled once for each version of Node, from the sources that it carries, into `node_modules/.cache`. Needs a C
 * and a C++ compiler, make, Python and npm.
 */
export async function nativeLibrary(): Promise<NativeLibrary> {
  const target = path.join(
    root,
    'node_modules/.cache/zookeeper-native',
    `${process.platform}-${process.arch}-${process.versions.modules}`,
  );
  if (!existsSync(target)) await build(target);
  return createRequire(import.meta.url)(path.join(target, 'zookeeper')) as NativeLibrary;
}

async function build(target: string): Promise<void> {
  const caches = path.dirname(target);
  await mkdir(caches, { recursive: true });
  // The build runs in a path without blanks, which its makefiles need, and its result is moved into place as a whole: two
  // processes may build at once.
  const draft = await mkdtemp(path.join(tmpdir(), 'zookeeper-native-'));
  const whole = await mkdtemp(path.join(caches, 'built-'));
  try {
    const source = await realpath(installed);
    const own = (file: string): boolean => path.relative(source, file).split(path.sep)[0] !== 'node_modules';
    await cp(source, path.join(draft, 'zookeeper'), { recursive: true, filter: own });
    await mkdir(path.join(draft, 'node_modules/.bin'), { recursive: true });
    for (const name of DEPENDENCIES) {
      const target = await realpath(path.join(path.dirname(source), name));
      const here = path.join(draft, 'node_modules', name);
      // The compiler gets the path of the headers.
      if (name === 'nan') await cp(target, here, { recursive: true });
      else await symlink(target, here, 'dir');
    }
    // The folder in which npm finds the commands that the package's script uses.
    const bin = await realpath(path.join(path.dirname(source), 'node-gyp-build/bin.js'));
    const command = path.join(draft, 'node_modules/.bin/node-gyp-build');
    await writeFile(command, `#!/bin/sh\nexec node '${bin}' "$@"\n`, { mode: 0o755 });
    const home = path.dirname(path.dirname(process.execPath));
    await symlink(home, path.join(draft, 'node'), 'dir');
    await compile(path.join(draft, 'zookeeper'), path.join(draft, 'node'));
    await cp(draft, whole, { recursive: true, verbatimSymlinks: true });
    await rename(whole, target).catch(() => undefined);
  } finally {
    await rm(draft, { recursive: true, force: true });
    await rm(whole, { recursive: true, force: true });
  }
}

async function compile(directory: string, home: string): Promise<void> {
  // The headers of this Node, if it has them; otherwise node-gyp downloads them.
  const headers = existsSync(path.join(home, 'include/node/node.h')) ? { npm_config_nodedir: home } : {};
  const PATH = [path.dirname(process.execPath), process.env['PATH']].join(path.delimiter);
  try {
    await promisify(execFile)('npm', ['run', 'install'], {
      cwd: directory,
      env: { ...process.env, ...headers, PATH },
      timeout: BUILD_MS,
      maxBuffer: 2 ** 26,
    });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    const output = `${stdout}\n${stderr}`.trim().split('\n').slice(-30).join('\n');
    throw new Error(
      'The native package "zookeeper" could not be compiled, so @locks/zookeeper/native is not tested. ' +
        `Install a C++ compiler, make and Python ("apt-get install g++ make python3"). npm printed:\n${output}`,
      { cause: error },
    );
  }
}
