import { describe, expect, it, vi } from 'vitest';
import {
  type AcquireRequest,
  type Call,
  type Grant,
  type LocalWaiter,
  LocalWaiters,
  type LocalWaitersOptions,
} from '../../src/backend/index.ts';
import { pass, settled, useFakeClock } from '../fixture.ts';

const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

function request(acquisitionId: string, resource = 'a'): AcquireRequest {
  return { acquisitionId, resource, ttlMs: 1_000, mode: { kind: 'exclusive' } };
}

function grantOf(acquisitionId: string): Grant {
  return { request: request(acquisitionId), countedFrom: 0, fencingToken: 1n };
}

function idsOf(waiters: readonly LocalWaiter[]): string[] {
  return waiters.map(({ request: { acquisitionId } }) => acquisitionId);
}

function fail(): never {
  throw new Error('down');
}

/** Waiters whose polls are noted with their times. */
function polled(options: LocalWaitersOptions<LocalWaiter> = {}) {
  useFakeClock();
  const startedAt = performance.now();
  const polls: number[] = [];
  const waiters = new LocalWaiters({
    pollEveryMs: 500,
    ...options,
    poll() {
      polls.push(performance.now() - startedAt);
      return options.poll?.();
    },
  });
  return { waiters, polls };
}

describe('the index of the waiters', () => {
  it('has each waiter by its id and by its resource, in the order in which they came', () => {
    const emptied = vi.fn();
    const waiters = new LocalWaiters({ emptied });
    for (const id of ['2', '1']) waiters.register(request(id), call);
    waiters.register(request('3', 'b'), call);
    // One that is known keeps its place.
    const later: Call = { ...call };
    expect(waiters.register(request('2'), later)).toBe(waiters.get('2'));
    expect(waiters.get('2')?.call).toBe(later);
    expect(idsOf(waiters.of('a'))).toEqual(['2', '1']);
    expect(idsOf(waiters.all())).toEqual(['2', '1', '3']);
    expect(waiters.resources()).toEqual(['a', 'b']);
    expect(waiters.size).toBe(3);
    expect(waiters.remove(request('2'))?.request.acquisitionId).toBe('2');
    expect(emptied).not.toHaveBeenCalled();
    waiters.remove(request('1'));
    expect(emptied.mock.calls).toEqual([['a']]);
    expect(waiters.remove(request('1'))).toBeUndefined();
    expect(emptied).toHaveBeenCalledOnce();
    expect([waiters.countOf('a'), waiters.countOf('b')]).toEqual([0, 1]);
    expect(waiters.of('a')).toEqual([]);
  });

  it('keeps what a backend adds to a waiter', () => {
    const waiters = new LocalWaiters({ make: (waiter) => Object.assign(waiter, { ticket: 0n }) });
    waiters.register(request('1'), call).ticket = 7n;
    expect(waiters.get('1')?.ticket).toBe(7n);
  });
});

describe('a wait', () => {
  it('ends with the grant of its waiter, who is no waiter from then on', async () => {
    const waiters = new LocalWaiters();
    const turn = waiters.awaitTurn(request('1'), call);
    expect(waiters.pending).toBe(1);
    waiters.grant(waiters.register(request('1'), call), grantOf('1'));
    expect(await turn).toEqual(grantOf('1'));
    expect([waiters.size, waiters.pending]).toEqual([0, 0]);
  });

  it('gets the grant that came before it began', async () => {
    const waiters = new LocalWaiters();
    waiters.grant(waiters.register(request('1'), call), grantOf('1'));
    expect(waiters.size).toBe(1);
    expect(await waiters.awaitTurn(request('1'), call)).toEqual(grantOf('1'));
    expect([waiters.size, waiters.pending]).toEqual([0, 0]);
  });

  it('ends with a hint for its resource, or for all, and its waiter stays one', async () => {
    const waiters = new LocalWaiters();
    const onB = waiters.awaitTurn(request('2', 'b'), call);
    const onA = waiters.awaitTurn(request('1'), call);
    waiters.hint('a');
    waiters.hint('unknown');
    expect(await onA).toBeUndefined();
    expect(waiters.pending).toBe(1);
    waiters.hint();
    expect(await onB).toBeUndefined();
    expect([waiters.size, waiters.pending]).toEqual([2, 0]);
  });

  it('is one at a time: the next ends the one before, and a call that is over begins none', async () => {
    const waiters = new LocalWaiters();
    const before = waiters.awaitTurn(request('1'), call);
    const after = waiters.awaitTurn(request('1'), call);
    expect(await before).toBeUndefined();
    expect(waiters.pending).toBe(1);
    expect(await waiters.awaitTurn(request('1'), { ...call, deadline: 0 })).toBeUndefined();
    expect(await after).toBeUndefined();
    expect(waiters.pending).toBe(0);
  });

  it('ends when the waiters are closed, and none begins afterwards', async () => {
    const { waiters, polls } = polled();
    const turn = waiters.awaitTurn(request('1'), call);
    waiters.close();
    expect(await turn).toBeUndefined();
    expect(await waiters.awaitTurn(request('1'), call)).toBeUndefined();
    // The answer to an attempt that was under way.
    waiters.register(request('2'), call);
    await pass(1_000);
    waiters.pollWithin(1);
    await pass(1_000);
    expect(polls).toEqual([]);
    expect(waiters.pending).toBe(0);
  });
});

it('a waiter is silent once core neither calls for it nor waits', async () => {
  useFakeClock();
  const waiters = new LocalWaiters();
  const silent = (): string[] => idsOf(waiters.silentFor(2_000));
  const turn = waiters.awaitTurn(request('waits'), call);
  waiters.register(request('attempts'), call);
  waiters.register(request('silent'), call);
  await pass(1_500);
  waiters.register(request('attempts'), call);
  await pass(501);
  expect(silent()).toEqual(['silent']);
  await pass(1_500);
  expect(silent()).toEqual(['attempts', 'silent']);
  // Counted from the end of the wait.
  waiters.hint();
  await turn;
  expect(silent()).not.toContain('waits');
  await pass(2_001);
  expect(silent()).toContain('waits');
});

describe('the poller', () => {
  it('polls in its rhythm while there are waiters, and then ends', async () => {
    const { waiters, polls } = polled();
    await pass(1_000);
    waiters.register(request('1'), call);
    await pass(1_100);
    expect(polls).toEqual([1_500, 2_000]);
    waiters.remove(request('1'));
    await pass(2_000);
    expect(polls).toHaveLength(2);
    expect(vi.getTimerCount()).toBe(0);
    waiters.register(request('2'), call);
    await pass(500);
    expect(polls).toHaveLength(3);
  });

  it('polls sooner when asked, and never later than planned', async () => {
    const { waiters, polls } = polled();
    waiters.register(request('1'), call);
    for (let asked = 0; asked < 10; asked += 1) {
      waiters.pollWithin(50);
      await pass(10);
    }
    waiters.pollWithin(400);
    await pass(399);
    expect(polls).toEqual([50, 100]);
    await pass(1);
    expect(polls).toEqual([50, 100, 500]);
  });

  it('waits for the end of a poll, and counts from there what was asked meanwhile', async () => {
    let end = (): void => {};
    const poll = (): Promise<void> => new Promise((resolve) => (end = resolve));
    const { waiters, polls } = polled({ poll });
    waiters.register(request('1'), call);
    waiters.pollWithin(10);
    await pass(10);
    waiters.pollWithin(30);
    waiters.pollWithin(20);
    waiters.pollWithin(40);
    await pass(1_000);
    expect(polls).toEqual([10]);
    end();
    await settled();
    await pass(20);
    expect(polls).toEqual([10, 1_030]);
  });

  it.each([
    ['throws', fail],
    ['rejects', (): Promise<void> => Promise.reject(new Error('down'))],
  ])('ends all waits when a poll %s, and goes on', async (_how, poll) => {
    const { waiters, polls } = polled({ poll });
    const turns = ['a', 'b'].map((resource) => waiters.awaitTurn(request(resource, resource), call));
    await pass(500);
    expect(await Promise.all(turns)).toEqual([undefined, undefined]);
    await pass(500);
    expect(polls).toEqual([500, 1_000]);
  });

  it('keeps the process alive for as long as somebody waits', async () => {
    const timeouts = vi.spyOn(globalThis, 'setTimeout');
    const planned = () => timeouts.mock.results.filter((_, at) => timeouts.mock.calls[at]?.[1] === 23);
    const isKept = (): boolean => planned().at(-1)?.value.hasRef();
    const waiters = new LocalWaiters({ poll() {}, pollEveryMs: 23 });
    waiters.register(request('1'), call);
    expect(isKept()).toBe(false);
    const turn = waiters.awaitTurn(request('1'), call);
    expect(isKept()).toBe(true);
    await vi.waitFor(() => expect(planned().length).toBeGreaterThan(1));
    expect(isKept()).toBe(true);
    waiters.hint();
    await turn;
    expect(isKept()).toBe(false);
    waiters.close();
    timeouts.mockRestore();
  });
});
