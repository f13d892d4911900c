import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { canSeparateNetworks, ProcessNetwork, startMariadb, startPostgres, waitUntil } from '../src/index.ts';

const hasNetworks = await canSeparateNetworks();

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
