import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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

const STARTS_WITHIN_MS = 60_000;
const ENDS_WITHIN_MS = 5_000;

/** What the rehearsal needs of the public registry, kept between runs: verdaccio and yarn. */
export const toolsFolder = join(root, '.tools/release/tools');

export async function startRegistry(folder: string): Promise<Registry> {
  await installManifest('release', toolsFolder);
  const { freePort } = await import('../../../test-servers/src/free-port.ts');
  const port = await freePort();
  // Caches of package managers know packages by their URL, and an earlier run may have had this port.
  const host =
    process.platform === 'linux'
      ? `127.${randomInt(1, 255)}.${randomInt(0, 255)}.${randomInt(1, 255)}`
      : '127.0.0.1';
  const url = `http://${host}:${port}/`;
  const storage = join(folder, 'storage');
  mkdirSync(storage, { recursive: true });
  const config = join(folder, 'verdaccio.yaml');
  const log = join(folder, 'verdaccio.log');
  writeFileSync(config, configOf(url, storage, folder));
  const output = openSync(log, 'w');
  const main = join(toolsFolder, 'node_modules/verdaccio/bin/verdaccio');
  const child = spawn(process.execPath, [main, '--config', config], {
    cwd: folder,
    stdio: ['ignore', output, output],
  });
  const ended = once(child, 'close');
  const stop = async () => {
    child.kill('SIGTERM');
    const killed = setTimeout(() => child.kill('SIGKILL'), ENDS_WITHIN_MS);
    await ended;
    clearTimeout(killed);
  };
  try {
    await untilAnswers(`${url}-/ping`, () => child.exitCode !== null);
  } catch (error) {
    await stop();
    throw new Error(`verdaccio did not start:\n${readFileSync(log, 'utf8')}`, { cause: error });
  }
  const settings = [`registry=${url}`, `@locks:registry=${url}`, `//${host}:${port}/:_authToken=rehearsal`];
  const publisherSettings = join(folder, 'publisher.npmrc');
  writeFileSync(publisherSettings, `${settings.join('\n')}\n`);
  return {
    url,
    publisherSettings,
    tarball: (name, version) => join(storage, name, `${name.replace('@locks/', '')}-${version}.tgz`),
    stop,
  };
}

function configOf(listen: string, storage: string, folder: string): string {
  return JSON.stringify({
    storage,
    listen,
    max_body_size: '50mb',
    auth: { htpasswd: { file: join(folder, 'htpasswd'), max_users: -1 } },
    packages: { '@locks/*': { access: '$all', publish: '$all' } },
    log: { type: 'stdout', format: 'pretty', level: 'warn' },
  });
}

async function untilAnswers(url: string, hasEnded: () => boolean): Promise<void> {
  const end = performance.now() + STARTS_WITHIN_MS;
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    if (answer?.ok) return;
    if (hasEnded() || performance.now() > end) throw new Error(`no answer from ${url}`);
    await sleep(100);
  }
}
