import { call, handOffOverCutChannel, request, startProxy, startRedis } from '@locks/test-servers';
import { fresh, redis, useRedis } from '@locks/test-servers/redis-clients/use-redis';
import { describe, expect, it } from 'vitest';
import { participant } from './setup.ts';

useRedis();

describe('a client', () => {
  it('reports unknown when a release finds nothing after the client reconnected', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    await a.backend.release(await a.take(fresh()), call); // The server knows the scripts.
    const grant = await a.take(fresh());
    proxy.loseReplies(({ command }) => command === 'EVALSHA', { times: 1, thenCut: true });
    expect(await a.backend.release(grant, call)).toBe('unknown');
    expect(await a.backend.release(grant, call)).toBe('not-held');
  });

  it('gives the same grant when an attempt is sent again after a lost reply', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(proxy);
    const name = fresh();
    proxy.loseReplies(({ command }) => command === 'EVALSHA', { times: 1, thenCut: true });
    const grant = await a.take(name);
    const [holder] = (await a.backend.inspect(name, call)).holders;
    expect(holder?.fencingToken).toBe(grant.fencingToken);
    expect(grant.validForMs).toBeLessThanOrEqual(30_000);
  });

  it('listens again when its channel is cut, and loses no hand-off', async () => {
    await using proxy = await startProxy(redis);
    await using a = participant(redis);
    await using b = participant(proxy);
    await handOffOverCutChannel(a, b, proxy, fresh());
  });

  it('reports a wrong password and missing rights, and does not repeat the call', async () => {
    await using own = await startRedis({ password: 'secret' });
    await using stranger = participant(own, {}, { retryStrategy: () => null });
    const error: unknown = await stranger.backend
      .attempt(request('x'), true, call)
      .catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(Error);
    await own.command('ACL', 'SETUSER', 'reader', 'on', '>secret', '~*', '+@read', '+@connection', '+info');
    await using reader = participant(own, {}, { username: 'reader', password: 'secret' });
    const denied: unknown = await reader.backend
      .attempt(request('x'), true, call)
      .catch((reason: unknown) => reason);
    expect(String(denied)).toMatch(/NOPERM/);
    expect(reader.backend.isRetryable(denied)).toBe(false);
  });

  it('is refused after close, and leaves the client usable', async () => {
    await using a = participant(redis);
    await a.backend.close();
    await expect(a.backend.attempt(request('x'), true, call)).rejects.toMatchObject({ code: 'LOCK_CLOSED' });
    expect(await a.client.ping()).toBe('PONG');
    expect(a.client.listenerCount('close')).toBe(0);
  });
});
