import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { isFree, type MariadbServer, startMariadb } from '../src/index.ts';

let server: MariadbServer | undefined;

afterEach(() => server?.stop());

/** The first packet of a connection, or undefined when there is none in time. */
function greeting(port: number, withinMs = 5_000): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (packet?: Buffer): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(packet);
    };
    const timer = setTimeout(end, withinMs);
    socket.once('data', end);
    socket.once('error', () => end());
  });
}

describe('a private MariaDB', { timeout: 30_000 }, () => {
  it('lets clients in when the start resolves, on loopback, and is gone with its files after stop', async () => {
    server = await startMariadb();
    expect((await greeting(server.port))?.toString('latin1')).toContain('MariaDB');
    expect(server.url).toBe(`mysql://app@127.0.0.1:${server.port}/locks`);
    await server.stop();
    await server.stop();
    expect(existsSync(server.dir)).toBe(false);
    expect(await isFree(server.port)).toBe(true);
  });

  it('is killed and comes back on the same port; paused it accepts and says nothing', async () => {
    server = await startMariadb();
    const before = server.pid;
    await server.kill();
    expect(server.running).toBe(false);
    expect(await greeting(server.port)).toBeUndefined();
    await server.restart();
    expect(server.pid).not.toBe(before);
    await server.pause();
    expect(await greeting(server.port, 300)).toBeUndefined();
    server.resume();
    expect(await greeting(server.port)).toBeDefined();
  });

  it('takes more arguments, and says what is wrong with them', async () => {
    await expect(startMariadb({ args: ['--no-such-option'] })).rejects.toThrow(/no-such-option/);
  });
});
