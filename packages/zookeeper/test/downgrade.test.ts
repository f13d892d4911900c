import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { AcquireRequest, Call, Grant, LockBackend } from '@locks/core/backend';
import { startZookeeper, type ZooKeeperServer } from '@locks/test-servers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientPort } from '../src/client-port.ts';
import { readSource } from '../src/node-source.ts';
import { ZooKeeperLockBackend } from '../src/zookeeper-backend.ts';

const DELETE = 2;
/** In place of the number of a request. */
const EVENT = -1;
const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

let server: ZooKeeperServer;

beforeAll(async () => {
  server = await startZookeeper();
});
afterAll(() => server.stop());

/** The way to the server, which may lose what a watch tells, and an answer. */
class LossyNetwork {
  losesEvents = false;
  /** Whether the connection ends in place of the answer to this request. */
  ends: ((request: Buffer) => boolean) | undefined;
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((client) => {
    const onward = connect(server.port, server.host);
    let isLast = false;
    for (const [from, to] of [[client, onward] as const, [onward, client] as const]) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
    }
    client.on('data', (chunk: Buffer) => {
      isLast ||= messagesIn(chunk).some((message) => this.ends?.(message));
      onward.write(chunk);
    });
    onward.on('data', (chunk: Buffer) => {
      if (isLast) {
        this.ends = undefined;
        return void client.destroy();
      }
      const heard = messagesIn(chunk).filter(
        (message) => !this.losesEvents || message.readInt32BE(4) !== EVENT,
      );
      if (heard.length > 0) client.write(Buffer.concat(heard));
    });
  });

  async open(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

/** The messages in a chunk, each with its length in front. */
function messagesIn(chunk: Buffer): Buffer[] {
  const messages: Buffer[] = [];
  for (let at = 0; at < chunk.length; ) {
    const end = at + 4 + chunk.readInt32BE(at);
    messages.push(chunk.subarray(at, end));
    at = end;
  }
  return messages;
}

type Lost = readonly [what: string, ends: (request: Buffer) => boolean];
const SHARE: Lost = ['the share', (request) => request.includes('/s.')];
const END: Lost = [
  'the end of the hold',
  (request) => request.readInt32BE(8) === DELETE && request.includes('/x.'),
];

describe.each<readonly [string, boolean, readonly Lost[]]>([
  ['in one transaction', false, [SHARE]],
  ['in steps, with a client without transactions', true, [SHARE, END]],
])('a downgrade %s', (_, inSteps, answers) => {
  function backendAt(
    address: string,
  ): LockBackend & Required<Pick<LockBackend, 'awaitTurn' | 'downgrade' | 'forceRelease' | 'ping'>> {
    const { source, ...options } = readSource('zookeeperBackend', address, {});
    if (source.kind === 'given') return expect.fail('it opens its client');
    const open = async (): Promise<ClientPort> =>
      Object.assign(await source.open(), inSteps && { replace: undefined });
    return new ZooKeeperLockBackend('zookeeper', { kind: 'own', open }, options);
  }

  async function setUp() {
    const network = new LossyNetwork();
    const [a, b] = [backendAt(await network.open()), backendAt(server.address)];
    const resource = `downgrade-${randomUUID()}`;
    const requestOf = (): AcquireRequest => ({
      resource,
      acquisitionId: randomUUID(),
      mode: { kind: 'exclusive' },
      ttlMs: 30_000,
    });
    const attempt = await a.attempt(requestOf(), false, call);
    if (attempt.status !== 'granted') return expect.fail(`it is ${attempt.status}`);
    // The watch of its own node is set: a read after the forced release would tell of it.
    await a.renew([{ grant: attempt.grant, ttlMs: 30_000 }], call);
    return {
      network,
      a,
      b,
      resource,
      grant: attempt.grant,
      /** The hold is ended by force, unknown to its holder, and the next one holds. */
      async endByForce(): Promise<Grant> {
        const next = requestOf();
        expect(await b.attempt(next, true, call)).toMatchObject({ status: 'contended' });
        const turn = b.awaitTurn(next, call);
        await b.forceRelease(resource, attempt.grant.request.acquisitionId, call);
        return (await turn) ?? expect.fail('nobody is next');
      },
      async holders(): Promise<readonly string[]> {
        const { holders, waiters } = await b.inspect(resource, call);
        return [
          ...holders.map(({ acquisitionId, mode }) => `${mode.kind} ${acquisitionId}`),
          ...waiters.map(() => 'a waiter'),
        ];
      },
      async [Symbol.asyncDispose]() {
        await Promise.all([a.close(), b.close()]);
        network.close();
      },
    };
  }

  async function loseAnswer({ network, a, grant }: Awaited<ReturnType<typeof setUp>>, [, ends]: Lost) {
    network.ends = ends;
    await expect(a.downgrade(grant, call)).rejects.toMatchObject({ code: 'CONNECTION_LOSS' });
    await expect.poll(() => a.ping(call).catch(() => 'away'), { timeout: 10_000 }).toBeUndefined();
  }

  const LOST = { status: 'lost', reason: 'force-released' } as const;

  test('hears that the hold was ended by force, before anything else is deleted', async () => {
    await using set = await setUp();
    const { network, a, grant } = set;
    network.losesEvents = true;
    const next = await set.endByForce();
    [, network.ends] = END;
    expect(await a.downgrade(grant, call)).toEqual(LOST);
    expect(await set.holders()).toEqual([`exclusive ${next.request.acquisitionId}`]);
  });

  describe.each(['asks for it again', 'looks for its hold'])(
    'without an answer, whose holder %s,',
    (then) => {
      test('brings back no hold that was ended by force', async () => {
        await using set = await setUp();
        const { network, a, grant } = set;
        network.losesEvents = true;
        const next = await set.endByForce();
        await loseAnswer(set, SHARE);
        if (then === 'asks for it again') expect(await a.downgrade(grant, call)).toEqual(LOST);
        await expect.poll(() => a.renew([{ grant, ttlMs: 30_000 }], call)).toEqual([LOST]);
        await expect.poll(() => set.holders()).toEqual([`exclusive ${next.request.acquisitionId}`]);
      });

      test.each(answers)('keeps the hold, where the answer to %s is lost', async (...answer) => {
        await using set = await setUp();
        const { a, grant } = set;
        await loseAnswer(set, answer);
        if (then === 'asks for it again') expect(await a.downgrade(grant, call)).toEqual({ status: 'held' });
        expect(await a.renew([{ grant, ttlMs: 30_000 }], call)).toEqual([{ status: 'held' }]);
        expect((await set.holders())[0]).toBe(`shared ${grant.request.acquisitionId}`);
        expect(await a.release(grant, call)).toBe('released');
        expect(await set.holders()).toEqual([]);
      });

      test.each(answers)(
        'is ended by force as a whole, where the answer to %s is lost',
        async (...answer) => {
          await using set = await setUp();
          const { a, b, resource, grant } = set;
          await loseAnswer(set, answer);
          expect(await b.forceRelease(resource, undefined, call)).toMatchObject([
            { mode: { kind: 'shared' } },
          ]);
          expect(await set.holders()).toEqual([]);
          if (then === 'asks for it again') await expect.poll(() => a.downgrade(grant, call)).toEqual(LOST);
          await expect.poll(() => a.renew([{ grant, ttlMs: 30_000 }], call)).toEqual([LOST]);
          expect(await set.holders()).toEqual([]);
        },
      );
    },
  );
});
