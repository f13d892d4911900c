import { once } from 'node:events';
import { connect } from 'node:net';
import { waitUntil } from '@locks/test-servers';
import { afterEach, describe, expect, it } from 'vitest';
import type { BoardState } from '../src/board/watched-locks.ts';
import { locksHere, Program } from './program.ts';
import { TestRedis } from './started-stores.ts';

const redis = new TestRedis();
const running: Program[] = [];

afterEach(async () => {
  for (const { child } of running) child.kill('SIGINT');
  await Promise.all(running.splice(0).map(({ outcome }) => outcome));
});

interface Board {
  readonly program: Program;
  /** Without what stands behind `#`. */
  readonly url: string;
  readonly token: string;
}

async function start(...args: string[]): Promise<Board> {
  const program = new Program(['board', '--every', '50ms', ...args], redis.url);
  running.push(program);
  const [chunk] = (await once(program.child.stdout as NodeJS.ReadableStream, 'data')) as [Buffer];
  const [url = '', token = ''] = String(chunk).trim().split('#');
  return { program, url, token };
}

const bearer = ({ token }: Board): Record<string, string> => ({ authorization: `Bearer ${token}` });

async function stateOf({ url, token }: Board): Promise<BoardState & { readonly mayRelease: boolean }> {
  const response = await fetch(`${url}state`, { headers: bearer({ url, token } as Board) });
  expect(response.status).toBe(200);
  return (await response.json()) as BoardState & { mayRelease: boolean };
}

const statusOf = async (url: string, options?: RequestInit): Promise<number> =>
  (await fetch(url, options)).status;

function release(board: Board, body: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${board.url}release`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...bearer(board), ...headers },
    body: JSON.stringify(body),
  });
}

/** The status of a request whose headers `fetch` does not let anybody set. */
async function rawStatus(board: Board, headers: Record<string, string>): Promise<number> {
  const { hostname, port, host } = new URL(board.url);
  const socket = connect(Number(port), hostname);
  const lines = Object.entries({ host, connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.write(`GET /state HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  let answer = '';
  for await (const chunk of socket) answer += String(chunk);
  return Number(/^HTTP\/1.1 (\d+)/.exec(answer)?.[1]);
}

describe('locks board', () => {
  it('shows who holds and who waits, of the names that begin with a prefix', async () => {
    const lease = await redis.locks.lock('stock').acquire({ label: 'a holder' });
    const waiter = redis.locks.lock('stock').acquire({ label: 'a waiter', waitMs: 30_000 });
    await using _other = await redis.locks.lock('other').acquire();
    const board = await start('sto');
    await waitUntil(async () => (await stateOf(board)).states[0]?.waiters.length === 1, {
      what: 'the waiter',
    });
    expect(await stateOf(board)).toMatchObject({
      isPart: false,
      mayRelease: false,
      states: [
        {
          name: 'stock',
          holders: [
            {
              acquisitionId: lease.acquisitionId,
              label: 'a holder',
              fencingToken: String(lease.fencingToken),
            },
          ],
          waiters: [{ label: 'a waiter', waitingForMs: expect.any(Number) as number }],
        },
      ],
    });
    await lease.release();
    await (await waiter).release();
  });

  it('tells a hold that was released from one whose ttl ran out', async () => {
    const board = await start('ends-');
    const released = await redis.locks.lock('ends-released').acquire();
    const lost = await redis.locks.lock('ends-lost').acquire({ ttlMs: 4_000, renewal: 'manual' });
    await waitUntil(async () => (await stateOf(board)).states.length === 2, { what: 'both to be seen' });
    await released.release();
    await waitUntil(async () => (await stateOf(board)).ended.length === 2, { what: 'both ends' });
    const endings = (await stateOf(board)).ended.map(({ name, ending }) => [name, ending]);
    expect(endings).toEqual([
      ['ends-lost', 'ran-out'],
      ['ends-released', 'ended'],
    ]);
    await lost.release().catch(() => undefined);
  });

  it('serves a page without anything of others, and with a strict content security policy', async () => {
    const { url } = await start();
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
    for (const [path, type] of [
      ['', 'text/html'],
      ['board.js', 'text/javascript'],
      ['board.css', 'text/css'],
    ] as const) {
      const response = await fetch(url + path);
      expect(response.headers.get('content-type')).toContain(type);
      const policy = response.headers.get('content-security-policy');
      expect(policy).toMatch(/^default-src 'none'; script-src 'self';.*frame-ancestors 'none'/);
      expect(policy).not.toContain('unsafe');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(await response.text()).not.toMatch(/https?:\/\/|innerHTML/);
    }
    expect(await statusOf(`${url}../package.json`)).toBe(404);
    expect(await statusOf(`${url}%2e%2e/package.json`)).toBe(404);
    expect(await statusOf(url, { method: 'POST' })).toBe(405);
  });

  it('refuses other sites, also those whose name leads to this address', async () => {
    const board = await start();
    const { port } = new URL(board.url);
    expect(await rawStatus(board, {})).toBe(200);
    expect(await rawStatus(board, { host: `localhost:${port}` })).toBe(200);
    expect(await rawStatus(board, { host: `rebound.example:${port}` })).toBe(403);
    expect(await rawStatus(board, { host: '127.0.0.1:1' })).toBe(403);
    expect(await rawStatus(board, { origin: 'http://other.example' })).toBe(403);
    expect(await rawStatus(board, { origin: 'null' })).toBe(403);
    expect(await rawStatus(board, { origin: `http://127.0.0.1:${port}` })).toBe(200);
    expect(await rawStatus(board, { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' })).toBe(403);
    expect(await rawStatus(board, { 'sec-fetch-site': 'same-origin' })).toBe(200);
  });

  it('is read-only unless that is allowed', async () => {
    await using lease = await redis.locks.lock('kept').acquire();
    const board = await start();
    const { acquisitionId } = lease;
    expect((await release(board, { name: 'kept', acquisitionId })).status).toBe(403);
    expect(lease.signal.aborted).toBe(false);
    expect(await redis.locks.isLocked('kept')).toBe(true);
  });

  it('--allow-release ends one hold, for who has the token', async () => {
    const lease = await redis.locks.lock('stuck').acquire();
    const { acquisitionId } = lease;
    const board = await start('--allow-release');
    expect(board.token).toMatch(/^[\w-]{24}$/);
    expect(await statusOf(`${board.url}state`)).toBe(401);
    const wrong = { authorization: 'Bearer wrong' };
    expect((await release(board, { name: 'stuck', acquisitionId }, wrong)).status).toBe(401);
    const text = { 'content-type': 'text/plain' };
    expect((await release(board, { name: 'stuck', acquisitionId }, text)).status).toBe(415);
    expect((await release(board, { name: 'stuck' })).status).toBe(400);
    expect((await release(board, { name: 'stuck', more: 'x'.repeat(20_000) })).status).toBe(413);
    expect(await (await release(board, { name: 'stuck', acquisitionId: 'another' })).json()).toEqual({
      released: [],
    });
    expect(await redis.locks.isLocked('stuck')).toBe(true);
    const response = await release(board, { name: 'stuck', acquisitionId });
    expect(await response.json()).toMatchObject({ released: [{ acquisitionId }] });
    expect(await redis.locks.isLocked('stuck')).toBe(false);
    expect((await stateOf(board)).ended).toMatchObject([{ name: 'stuck', ending: 'released-here' }]);
    await lease.release().catch(() => undefined);
  });

  it('--host has a token for whoever comes from elsewhere', async () => {
    const board = await start('--host', '0.0.0.0');
    const here = { ...board, url: board.url.replace('0.0.0.0', '127.0.0.1') };
    expect(await statusOf(here.url)).toBe(200);
    expect(await statusOf(`${here.url}state`)).toBe(401);
    expect((await stateOf(here)).mayRelease).toBe(false);
  });

  it('ends at Ctrl-C with 0', async () => {
    const { program } = await start();
    program.child.kill('SIGINT');
    expect(await program.outcome).toMatchObject({ code: 0, stderr: '' });
  });

  it('keeps what it knows while the store refuses to answer', async () => {
    await using _lease = await redis.locks.lock('kept-shown').acquire({ ttlMs: 60_000 });
    const board = await start('kept-shown');
    await redis.client.call('ACL', 'SETUSER', 'default', '-scan');
    await waitUntil(async () => (await stateOf(board)).error !== undefined, { what: 'the error' });
    expect((await stateOf(board)).states).toMatchObject([{ name: 'kept-shown' }]);
    await redis.client.call('ACL', 'SETUSER', 'default', '+scan');
    await waitUntil(async () => (await stateOf(board)).error === undefined, { what: 'the next answer' });
    expect((await stateOf(board)).states).toMatchObject([{ name: 'kept-shown' }]);
  });

  it.each([
    [['--port', '70000'], '--port'],
    [['--every', '1ms'], '--every'],
    [['--host', '203.0.113.1'], '--host'],
    [['--json'], '--json'],
    [['a', 'b'], '"b" is too much'],
  ])('refuses %j with 64', async (args, reason) => {
    const { code, stderr } = await locksHere(redis.url, 'board', ...args);
    expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(reason) as string });
  });
});
