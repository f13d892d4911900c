import { once } from 'node:events';
import { existsSync, statfsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import {
  canSeparateNetworks,
  makeServerClock,
  makeSmallDisk,
  ProcessNetwork,
  startMariadb,
  startPostgres,
  startRedis,
  underConditions,
  waitUntil,
} from '../src/index.ts';

const clock = await makeServerClock();
const disk = await makeSmallDisk(8);
const hasNetworks = await canSeparateNetworks();

async function secondsOf(redis: { command(...args: ['TIME']): Promise<unknown> }): Promise<number> {
  const [seconds] = (await redis.command('TIME')) as [string];
  return Number(seconds);
}

it.skipIf(clock === undefined)(
  'sets the wall clock of a server forward and back, also after a restart',
  async () => {
    await using redis = await underConditions(clock?.conditions ?? {}, () => startRedis());
    await using other = await startRedis();
    expect(Math.abs((await secondsOf(redis)) - Date.now() / 1_000)).toBeLessThan(10);
    clock?.moveBy(3_600_000);
    expect((await secondsOf(redis)) - Date.now() / 1_000).toBeGreaterThan(3_590);
    await redis.restart();
    expect((await secondsOf(redis)) - Date.now() / 1_000).toBeGreaterThan(3_590);
    expect(Math.abs((await secondsOf(other)) - Date.now() / 1_000)).toBeLessThan(10);
    clock?.moveBy(-7_200_000);
    expect((await secondsOf(redis)) - Date.now() / 1_000).toBeLessThan(-3_590);
  },
);

it.skipIf(disk === undefined)('fills the disk of a server, and gives the space back', async () => {
  if (disk === undefined) return;
  await using small = disk;
  const start = () => startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'always'] });
  await using redis = await underConditions(small.conditions, start);
  const free = () => statfsSync(redis.dir).bavail;
  expect(await redis.command('SET', 'a', 1)).toBe('OK');
  small.fill();
  expect(free()).toBe(0);
  await small.free();
  expect(free()).toBeGreaterThan(0);
});

/** Sends a number every 20 ms, and prints what comes back. */
const CLIENT = `const socket = require('node:net').connect(+process.argv[2], process.argv[1]);
let sent = 0;
setInterval(() => socket.write(++sent + ' '), 20);
socket.on('data', (data) => process.stdout.write(data));
socket.on('error', (error) => process.stdout.write(error.code));`;

it.skipIf(!hasNetworks).each([
  [undefined, false],
  ['toServer', false],
  ['toClient', true],
] as const)('loses the packets of a process: %s', { timeout: 30_000 }, async (direction, arrives) => {
  let received = '';
  const echo = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.on('data', (data) => {
      received += data;
      socket.write(data);
    });
  }).unref();
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const { port } = echo.address() as AddressInfo;
  await using network = new ProcessNetwork();
  const command = [process.execPath, '-e', CLIENT, network.host, String(port)] as const;
  const server = { host: '127.0.0.1', port };
  const client = await network.start(command, { stdio: ['ignore', 'pipe', 'inherit'] }, [server]);
  let answered = '';
  client.stdout?.on('data', (data: Buffer) => (answered += data.toString()));
  const numbers = (text: string): number => text.split(' ').length;
  await waitUntil(() => numbers(answered) > 5, { what: 'answers' });
  await network.lose(direction);
  await sleep(100);
  const [sentBefore, before] = [numbers(received), numbers(answered)];
  await sleep(400);
  expect(numbers(answered)).toBe(before);
  expect(numbers(received) > sentBefore).toBe(arrives);
  await network.heal();
  await waitUntil(() => numbers(answered) > before + 20, { what: 'answers again' });
  // TCP has brought what was lost.
  const parts = answered.trim().split(' ').slice(0, -1);
  expect(parts).toEqual(parts.map((_, index) => String(index + 1)));
});

it.each([
  ['PostgreSQL', startPostgres],
  ['MariaDB', startMariadb],
] as const)('starts %s again with its data, and without', { timeout: 60_000 }, async (_, start) => {
  await using server = await start();
  const written = path.join(server.dir, 'data', 'written-by-the-test');
  writeFileSync(written, '');
  await server.restart({ keepData: true });
  expect(existsSync(written)).toBe(true);
  await server.restart({ keepData: false });
  expect(existsSync(written)).toBe(false);
  expect(server.running).toBe(true);
});
