import type { AcquireRequest, Grant } from '@locks/core/backend';
import { call, granted, request, waitUntil } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { scripts } from '../src/generated/scripts.ts';
import { callFor, hearsAll, participant, type RedisParticipant } from './participant.ts';

useRedis();

/** The next reply to a participant goes through `answered`. */
function onNextReply({ port }: RedisParticipant, answered: (reply: unknown) => unknown): void {
  const send = port.send.bind(port);
  port.send = (key, command) => {
    port.send = send;
    return send(key, command).then(answered);
  };
}

function lose(): never {
  throw new Error('Command timed out');
}

/** Delays the next reply to a participant until the returned function is called. */
function holdNextReply(to: RedisParticipant): () => void {
  let goOn = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  onNextReply(to, (reply) => held.then(() => reply));
  return goOn;
}

/** Enqueues a request whose reply is lost: it is in the queue, and its client saw a failure. */
async function enqueueUnanswered(
  from: RedisParticipant,
  resource: string,
  ttlMs?: number,
): Promise<AcquireRequest> {
  const wanted = request(resource, ttlMs);
  onNextReply(from, lose);
  await expect(from.backend.attempt(wanted, true, call)).rejects.toThrow('timed out');
  return wanted;
}

// These cases share the ways to lose a reply, so they stand in one file.
describe('an enqueue whose reply was lost', () => {
  it('keeps its turn until it is repeated, also when the turn comes meanwhile', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const wanted = await enqueueUnanswered(b, name);
    const { turn } = await a.queue(request(name));
    expect(await a.backend.release(held, call)).toBe('released');
    await hearsAll(a, b);
    const grant = granted(await b.backend.attempt(wanted, true, call));
    expect(grant.fencingToken).toBeGreaterThan(held.fencingToken as bigint);
    expect(await redis.command('GET', `lock::${name}`)).toContain(wanted.acquisitionId);
    expect(await b.backend.release(grant, call)).toBe('released');
    expect((await turn)?.fencingToken).toBeGreaterThan(grant.fencingToken as bigint);
  });

  it('is handed off when it is abandoned instead', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const wanted = await enqueueUnanswered(b, name);
    const { turn } = await a.queue(request(name));
    await b.backend.abandon(wanted, call);
    await a.backend.release(held, call);
    expect((await turn)?.fencingToken).toBeGreaterThan(held.fencingToken as bigint);
  });
});

describe('an enqueue that is repeated', () => {
  it('keeps a hand-off that is told before its answer comes', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const wanted = request(name);
    await b.backend.attempt(wanted, true, call);
    const answer = holdNextReply(b);
    const again = b.backend.attempt(wanted, true, call);
    await b.client.ping();
    await a.backend.release(held, call);
    await hearsAll(a, b);
    answer();
    expect((await again).status).toBe('contended');
    const grant = (await b.backend.awaitTurn?.(wanted, callFor(2_000))) as Grant;
    expect(grant.fencingToken).toBeGreaterThan(held.fencingToken as bigint);
    expect(await b.backend.release(grant, call)).toBe('released');
  });

  it.each(['before', 'after'])(
    'while a check moves it to the channel, stands in the queue no more once it holds: told %s the answer',
    async (told) => {
      await using a = participant(redis);
      await using b = participant(redis, { maxPollMs: 60_000 });
      const name = fresh();
      const held = await a.take(name);
      const wanted = request(name);
      // The check that moves it has run, and its answer is late.
      let answerCheck = (): void => undefined;
      const send = b.port.send.bind(b.port);
      b.port.send = (key, command) => {
        const reply = send(key, command);
        if (command[1] !== scripts.check.sha1) return reply;
        return new Promise((resolve) => {
          answerCheck = () => resolve(reply);
        });
      };
      await b.backend.attempt(wanted, true, call);
      const forms = async () =>
        (await redis.command('ZRANGEBYSCORE', `{lock::${name}}:q`, '0', '+inf')) as string[];
      await waitUntil(async () => (await forms()).some((member) => member.includes('|=')), {
        what: 'its move',
      });
      const answer = told === 'before' ? holdNextReply(b) : () => undefined;
      const again = b.backend.attempt(wanted, true, call);
      await waitUntil(async () => (await forms()).length === 2, { what: 'its second form' });
      if (told === 'after') await again;
      else answerCheck();
      await sleep(50);
      await a.backend.release(held, call);
      await waitUntil(async () => (await redis.command('GET', `lock::${name}`)) !== null, {
        what: 'its grant',
      });
      await sleep(50);
      answer();
      await again;
      const grant = (await b.backend.awaitTurn?.(wanted, callFor(2_000))) as Grant;
      if (told === 'after') answerCheck();
      await waitUntil(async () => (await forms()).length === 0, { what: 'it leaves the queue' });
      expect(await b.backend.release(grant, call)).toBe('released');
    },
  );

  it('forgets a hand-off that an administrator ended before its answer', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const wanted = request(name);
    await b.backend.attempt(wanted, true, call);
    await a.backend.release(held, call);
    await hearsAll(a, b);
    await a.backend.forceRelease?.(name, undefined, call);
    await a.take(name);
    expect((await b.backend.attempt(wanted, true, call)).status).toBe('contended');
    expect(await b.backend.awaitTurn?.(wanted, callFor(50))).toBeUndefined();
  });

  it('keeps its position though the channel was opened in between', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    const name = fresh();
    const held = await a.take(name);
    const wanted = await enqueueUnanswered(b, name);
    const behind = await a.queue(request(name));
    await b.openChannel();
    expect((await b.backend.attempt(wanted, true, call)).status).toBe('contended');
    const turn = b.backend.awaitTurn?.(wanted, call);
    await waitUntil(
      async () => {
        const members = (await redis.command('ZRANGEBYSCORE', `{lock::${name}}:q`, 0, '+inf')) as string[];
        const own = members.filter((member) => member.startsWith(wanted.acquisitionId));
        return own.length === 1 && own[0]?.includes('|=lock:ch:');
      },
      { what: 'its one member with the channel' },
    );
    await a.backend.release(held, call);
    const grant = (await turn) as Grant;
    expect(await redis.command('GET', `lock::${name}`)).toContain(wanted.acquisitionId);
    await b.backend.release(grant, call);
    await a.backend.release((await behind.turn) as Grant, call);
  });

  it('holds, though a message of a hand-off that lapsed arrives late', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    const wanted = await enqueueUnanswered(b, name, 1_500);
    await a.backend.release(held, call);
    const handedOff = String(await redis.command('GET', `lock::${name}`));
    expect(handedOff).toContain(wanted.acquisitionId);
    await waitUntil(async () => (await redis.command('GET', `lock::${name}`)) === null, {
      what: 'it to lapse',
    });
    const grant = granted(await b.backend.attempt(wanted, true, call));
    const [channel] = (await redis.command('PUBSUB', 'CHANNELS', 'lock:ch:*')) as string[];
    const token = handedOff.split('|')[2] as string;
    expect(
      await redis.command(
        'PUBLISH',
        channel as string,
        `granted ${wanted.acquisitionId} ${token} lock::${name}`,
      ),
    ).toBe(1);
    await hearsAll(a, b);
    expect(await redis.command('GET', `lock::${name}`)).toContain(wanted.acquisitionId);
    expect(await b.backend.release(grant, call)).toBe('released');
  });
});

/** An enqueue of `from` that reached the server after it was abandoned. */
async function enqueueStray(from: RedisParticipant, resource: string): Promise<void> {
  const stray = await enqueueUnanswered(from, resource);
  const queue = `{lock::${resource}}:q`;
  const [alive, until, member] = (await redis.command('ZRANGE', queue, 0, 1, 'WITHSCORES')) as string[];
  await from.backend.abandon(stray, call);
  await redis.command('ZADD', queue, String(until), String(alive), 1, String(member));
}

describe('a grant that nobody waits for', () => {
  it('is abandoned at once, also while an enqueue of another is under way', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const [name, other] = [fresh(), fresh()];
    const held = await a.take(name);
    await a.take(other);
    await enqueueStray(b, name);
    const { turn } = await a.queue(request(name));
    const answer = holdNextReply(b);
    const entering = b.backend.attempt(request(other), true, call);
    await a.backend.release(held, call);
    expect((await turn)?.fencingToken).toBeGreaterThan(held.fencingToken as bigint);
    answer();
    expect(await entering).toEqual({ status: 'contended' });
  });

  it('is handed off to a waiter of its own process, whose lease counts from when it was last known to wait', async () => {
    await using a = participant(redis);
    await using b = participant(redis, { maxPollMs: 60_000 });
    await b.openChannel();
    const name = fresh();
    const held = await a.take(name);
    await enqueueStray(b, name);
    let suspendedMs = 0;
    const waiter = request(name);
    const clock = { ...call, now: () => call.now() + suspendedMs };
    const enqueuedAt = clock.now();
    await b.backend.attempt(waiter, true, clock);
    const answeredAt = clock.now();
    const turn = b.backend.awaitTurn?.(waiter, clock);
    const answer = holdNextReply(b);
    await a.backend.release(held, call);
    await waitUntil(
      async () => String(await redis.command('GET', `lock::${name}`)).startsWith(waiter.acquisitionId),
      { what: 'the hand-off' },
    );
    suspendedMs = 10_000;
    answer();
    const grant = (await turn) as Grant;
    expect(grant.countedFrom).toBeGreaterThanOrEqual(enqueuedAt);
    expect(grant.countedFrom).toBeLessThanOrEqual(answeredAt);
    expect(grant.validForMs).toBe(30_000);
  });
});

it('a late message about an acquisition ends nothing while it may hold, and a ghost afterwards', async () => {
  await using a = participant(redis);
  await using b = participant(redis, { maxPollMs: 50 });
  await b.openChannel();
  const [channel] = (await redis.command('PUBSUB', 'CHANNELS', 'lock:ch:*')) as string[];
  const name = fresh();
  const held = await a.take(name);
  const wanted = request(name, 100);
  const { turn } = await b.queue(wanted);
  await a.backend.release(held, call);
  const grant = (await turn) as Grant;
  expect(await b.backend.renew([{ grant, ttlMs: 600 }], call)).toEqual([{ status: 'held' }]);
  const tell = () =>
    redis.command(
      'PUBLISH',
      channel as string,
      `granted ${wanted.acquisitionId} ${grant.fencingToken} lock::${name}`,
    );
  const holds = async () =>
    String(await redis.command('GET', `lock::${name}`)).startsWith(wanted.acquisitionId);
  await sleep(200);
  await tell();
  await hearsAll(a, b);
  expect(await holds()).toBe(true);
  await waitUntil(async () => !(await holds()), { what: 'its end' });
  await redis.command('SET', `lock::${name}`, `${wanted.acquisitionId}|-|${grant.fencingToken}|`);
  await waitUntil(
    async () => {
      await tell();
      return !(await holds());
    },
    { what: 'the end of the ghost' },
  );
});
