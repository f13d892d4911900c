import { describe, expect, it, vi } from 'vitest';
import { type Call, type Grant, TurnWait } from '../../src/backend/index.ts';

const grant = { request: { acquisitionId: 'a' } } as unknown as Grant;
const endless: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

function callWith(signal: AbortSignal): Call {
  return { ...endless, signal };
}

describe('TurnWait', () => {
  it('gives the grant that the store reports, and none for a hint', async () => {
    const wait = new TurnWait();
    const first = wait.begin(endless);
    expect(wait.call).toBe(endless);
    expect(wait.end(grant)).toBe(true);
    expect(await first).toBe(grant);
    const second = wait.begin(endless);
    expect(wait.end()).toBe(true);
    expect(await second).toBeUndefined();
    expect(wait.call).toBeUndefined();
    expect(wait.end(grant)).toBe(false);
    expect(wait.fail(new Error('late'))).toBe(false);
  });

  it('rejects with an error of the store', async () => {
    const wait = new TurnWait();
    const failing = wait.begin(endless);
    expect(wait.fail(new Error('down'))).toBe(true);
    await expect(failing).rejects.toThrow('down');
  });

  it('ends the wait before when another begins', async () => {
    const wait = new TurnWait();
    const before = wait.begin(endless);
    const after = wait.begin(endless);
    expect(await before).toBeUndefined();
    wait.end(grant);
    expect(await after).toBe(grant);
  });

  it('ends without a grant when its call is aborted, and leaves no listener behind', async () => {
    const wait = new TurnWait();
    const { signal } = new AbortController();
    const removed = vi.spyOn(signal, 'removeEventListener');
    const waiting = wait.begin(callWith(signal));
    wait.end(grant);
    expect(await waiting).toBe(grant);
    expect(removed).toHaveBeenCalledOnce();
    const controller = new AbortController();
    const aborted = wait.begin(callWith(controller.signal));
    controller.abort();
    expect(await aborted).toBeUndefined();
    expect(await wait.begin(callWith(controller.signal))).toBeUndefined();
  });

  it('ends without a grant at the deadline of a call without a signal', async () => {
    const wait = new TurnWait();
    const startedAt = performance.now();
    expect(await wait.begin({ ...endless, deadline: startedAt + 30 })).toBeUndefined();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(29);
    expect(await wait.begin({ ...endless, deadline: startedAt })).toBeUndefined();
  });

  it('reports each end once, before the promise resolves', async () => {
    const ended = vi.fn();
    const wait = new TurnWait(ended);
    const waiting = wait.begin(endless);
    expect(ended).not.toHaveBeenCalled();
    wait.end(grant);
    wait.end(grant);
    expect(ended).toHaveBeenCalledOnce();
    await waiting;
  });
});
