import { execFile } from 'node:child_process';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findServer } from '../find-server.mjs';
import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { giveAway, unprivileged } from '../postgres/unprivileged.ts';
import { launchMariadb, MariadbServer, PortTakenError } from './mariadb-server.ts';

export interface MariadbOptions {
  /** More arguments of `mariadbd`, as `['--wait-timeout=1']`. */
  readonly args?: readonly string[];
  /** @defaultValue a free port */
  readonly port?: number;
}

const run = promisify(execFile);

/** Starts a MariaDB with a fresh data directory, and in it an empty database `locks`, on a free port of 127.0.0.1. */
export async function startMariadb({ args = [], port }: MariadbOptions = {}): Promise<MariadbServer> {
  const dir = await (await guardian()).makeDirectory('mariadb');
  try {
    await copyTemplate(dir);
    await writeFile(path.join(dir, 'init.sql'), initialStatements);
    await giveAway(dir);
    for (let tries = 1; ; tries += 1) {
      const place = { port: port ?? (await freePort()), dir, args };
      try {
        return new MariadbServer(place, await launchMariadb(place, 0));
      } catch (error) {
        if (error instanceof PortTakenError && port === undefined && tries < 10) continue;
        throw error;
      }
    }
  } catch (error) {
    await rm(dir, { recursive: true, force: true });
    throw error;
  }
}

/** One that may do everything, and one like an application's: the first is not bound by `read_only`. */
const initialStatements = `CREATE DATABASE IF NOT EXISTS locks;
CREATE USER IF NOT EXISTS admin@'%';
GRANT ALL ON *.* TO admin@'%' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS app@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO app@'%';
`;

let template: Promise<string> | undefined;

/** Making a data directory takes most of a start: it is made once in a process, and then copied. */
async function copyTemplate(dir: string): Promise<void> {
  template ??= makeTemplate();
  const from = await template.catch((error: unknown) => {
    template = undefined;
    throw error;
  });
  await run('cp', ['-R', from, path.join(dir, 'data')]);
}

async function makeTemplate(): Promise<string> {
  const dir = await (await guardian()).makeDirectory('mariadb-template');
  await giveAway(dir);
  const data = path.join(dir, 'data');
  const { command, args } = unprivileged(findServer('mariadb-install-db'), [
    '--no-defaults',
    `--datadir=${data}`,
    // A server that starts removes temporary tables it finds, those of its neighbours too.
    `--tmpdir=${dir}`,
    '--auth-root-authentication-method=normal',
    '--skip-test-db',
    '--skip-name-resolve',
    // Small files are quickly copied.
    '--innodb-log-file-size=8M',
    '--innodb-autoextend-increment=1',
  ]);
  await run(command, args, { cwd: dir });
  return data;
}
