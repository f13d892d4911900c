/** One process of a recipe for one machine: `node one-machine-process.ts RECIPE FOLDER`. It writes what it does into `FOLDER/log`. */
import { EventEmitter, once } from 'node:events';
import { appendFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createLocks } from '@locks/core';
import { fileBackend } from '@locks/file';
import { fromCache } from '../src/one-machine/build-cache.ts';
import { serveAlone } from '../src/one-machine/dev-server.ts';
import { ownProfile } from '../src/one-machine/electron-main.ts';
import { sharedToken } from '../src/one-machine/shared-token.ts';

const [recipe = '', folder = ''] = process.argv.slice(2);
const log = (what: string): void => appendFileSync(join(folder, 'log'), `${what}\n`);
const open = () => createLocks(fileBackend(join(folder, 'locks')));
/** Resolves when the parent sends a message. */
const told = (): Promise<unknown> => once(process, 'message');

const recipes: Record<string, () => Promise<void>> = {
  async token() {
    const token = await sharedToken(join(folder, 'locks'), async () => {
      log('refresh');
      await sleep(200);
      return `token of ${process.pid}`;
    });
    log(`has ${token}`);
  },
  async cache() {
    const locks = open();
    const entry = await fromCache(locks, join(folder, 'cache'), '@babel/core@7', async (into) => {
      log(`begin ${process.pid}`);
      writeFileSync(join(into, 'first'), String(process.pid));
      await told();
      writeFileSync(join(into, 'second'), String(process.pid));
    });
    log(`has ${entry}`);
    await locks.close();
  },
  async server() {
    const locks = open();
    const outcome = await serveAlone(locks, folder, 'http://localhost:5173', async () => {
      log(`serves ${process.pid}`);
      await told();
    });
    log(outcome.status === 'served' ? 'served' : `runs already: ${outcome.where}`);
    await locks.close();
  },
  async electron() {
    const app = Object.assign(new EventEmitter(), { exit: (code?: number) => process.exit(code) });
    const lease = await ownProfile(app, open(), 'default', log);
    if (lease === undefined) return;
    log(`owns ${process.pid}`);
    await told();
    app.emit('will-quit', { preventDefault: () => log('quits') });
  },
};
await recipes[recipe]?.();
if (process.connected) process.disconnect();
