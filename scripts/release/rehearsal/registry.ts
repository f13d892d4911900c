import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { installManifest } from '../../checks/application-folder.ts';
import { root } from '../../launcher/root.mjs';

/** A registry of this machine for `@locks/*` alone; it asks no other registry for anything. */
export interface Registry {
  readonly url: string;
  /** Settings of npm and pnpm by which nothing can reach another registry: for publishing. */
  readonly publisherSettings: string;
  /** Where the published tarballs are, as the registry keeps them. */
  tarball(name: string, version: string): string;
  stop(): Promise<void>;
}

/** What the rehearsal needs of the public registry, kept between runs: verdaccio and yarn. */
export const toolsFolder = join(root, '.tools/release/tools');

export async function startRegistry(folder: string): Promise<Registry> {
  await installManifest('release', toolsFolder);
  const { freePort, waitUntil } = await import('../../../test-servers/src/index.ts');
  // Caches of package managers know packages by their URL, and an earlier run may have had this port.
  const numbers = process.platform === 'linux' ? [1, 0, 1].map((least) => randomInt(least, 255)) : [0, 0, 1];
  const address = `//127.${numbers.join('.')}:${await freePort()}/`;
  const url = `http:${address}`;
  const storage = join(folder, 'storage');
  mkdirSync(storage, { recursive: true });
  const settings = {
    storage,
    listen: url,
    max_body_size: '50mb',
    auth: { htpasswd: { file: join(folder, 'htpasswd'), max_users: -1 } },
    packages: { '@locks/*': { access: '$all', publish: '$all' } },
    log: { type: 'stdout', format: 'pretty', level: 'warn' },
  };
  const config = join(folder, 'verdaccio.yaml');
  writeFileSync(config, JSON.stringify(settings));
  const log = join(folder, 'verdaccio.log');
  const output = openSync(log, 'w');
  const main = join(toolsFolder, 'node_modules/verdaccio/bin/verdaccio');
  const child = spawn(process.execPath, [main, '--config', config], { stdio: ['ignore', output, output] });
  const ended = once(child, 'close');
  const stop = async () => {
    child.kill('SIGKILL');
    await ended;
  };
  try {
    const isUp = async () => (await fetch(`${url}-/ping`)).ok;
    await waitUntil(isUp, { what: 'verdaccio', timeoutMs: 60_000 });
  } catch (error) {
    await stop();
    throw new Error(`verdaccio did not start:\n${readFileSync(log, 'utf8')}`, { cause: error });
  }
  const publisherSettings = join(folder, 'publisher.npmrc');
  writeFileSync(
    publisherSettings,
    `registry=${url}\n@locks:registry=${url}\n${address}:_authToken=rehearsal\n`,
  );
  return {
    url,
    publisherSettings,
    tarball: (name, version) => join(storage, name, `${name.replace('@locks/', '')}-${version}.tgz`),
    stop,
  };
}
