import { describe, expect, it } from 'vitest';
import { failure, figure, untilWaiting } from '../src/fault-lab/observe.ts';
import Lab from './lab.ts';

const SLACK_MS = 1_500;
/** A silent process is passed over after 3 s, at the next check of another one. */
const SILENCE_MS = 3_000;
const CHECK_MS = 900;

describe.concurrent('what happens to the network', { timeout: 40_000 }, () => {
  it('a dead writer in the queue holds back readers for its silence, not for the readers before it', async () => {
    await using lab = new Lab();
    const server = await lab.server();
    const proxy = await lab.proxy(server);
    const [near, far] = [await lab.locks(server), await lab.locks(proxy)];
    const reading = await near.readWriteLock('a').read.acquire();
    const writing = failure(far.readWriteLock('a').write.acquire({ waitMs: 1_000 }));
    await untilWaiting(near, 'a');
    proxy.blackhole();
    const cutAt = performance.now();
    const second = await near.readWriteLock('a').read.acquire({ waitMs: 15_000 });
    figure('dead writer before a reader: in after', performance.now() - cutAt);
    expect(performance.now() - cutAt).toBeLessThan(SILENCE_MS + CHECK_MS + SLACK_MS);
    reading.assertValid();
    expect((await writing).code).toMatch(/^LOCK_(BACKEND|TIMEOUT)$/);
    await proxy.heal();
    await Promise.all([reading.release(), second.release()]);
  });
});
