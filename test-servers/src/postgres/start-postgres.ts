import { execFile } from 'node:child_process';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { findServer } from '../find-server.mjs';
import { freePort } from '../free-port.ts';
import { guardian } from '../guardian.ts';
import { launchOn, PortTakenError, PostgresServer } from './postgres-server.ts';
import { giveAway, unprivileged } from './unprivileged.ts';

export interface PostgresOptions {
  /** Settings of the server, as `{ statement_timeout: '1s' }`. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** @defaultValue a free port */
  readonly port?: number;
}

/** Starts a PostgreSQL with a fresh data directory on a free port of 127.0.0.1. */
export async function startPostgres({ settings = {}, port }: PostgresOptions = {}): Promise<PostgresServer> {
  const dir = await (await guardian()).makeDirectory('postgres');
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  try {
    await giveAway(dir);
    await initialise(dir);
    for (let tries = 1; ; tries += 1) {
      const place = { port: port ?? (await freePort()), dir, args };
      try {
        return new PostgresServer(place, await launchOn(place, args, 0));
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

async function initialise(dir: string): Promise<void> {
  const { command, args } = unprivileged(findServer('initdb'), [
    ...['-D', path.join(dir, 'data'), '-U', 'postgres', '-A', 'trust'],
    ...['-E', 'UTF8', '--locale=C', '--no-sync', '--wal-segsize=1'],
  ]);
  await promisify(execFile)(command, args, { cwd: dir });
}
