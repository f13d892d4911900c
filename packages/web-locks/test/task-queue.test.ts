import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { TaskQueue } from '../src/task-queue.ts';

describe('TaskQueue', () => {
  let queue: TaskQueue;
  let started: string[];
  const answers = new Map<string, () => void>();
  beforeEach(() => {
    vi.useFakeTimers();
    queue = new TaskQueue();
    started = [];
  });
  afterEach(() => vi.useRealTimers());

  const add = (name: string): void =>
    queue.add(() => {
      started.push(name);
      return new Promise<void>((resolve) => answers.set(name, resolve));
    });
  const answer = async (name: string): Promise<void> => {
    answers.get(name)?.();
    await vi.advanceTimersByTimeAsync(0);
  };

  it('starts a task in the turn that adds it, if nothing runs', () => {
    add('a');
    expect(started).toEqual(['a']);
  });

  it('starts each task when the one before is answered', async () => {
    for (const name of ['a', 'b', 'c']) add(name);
    expect(started).toEqual(['a']);
    await answer('a');
    expect(started).toEqual(['a', 'b']);
    await answer('b');
    expect(started).toEqual(['a', 'b', 'c']);
  });

  it('goes on after a task that fails', async () => {
    queue.add(() => Promise.reject(new Error('no answer')));
    add('next');
    await vi.advanceTimersByTimeAsync(0);
    expect(started).toEqual(['next']);
  });

  it('waits longer than 1 s in all for a store that answers each task in time', async () => {
    for (const name of ['a', 'b', 'c', 'd']) add(name);
    for (const name of ['a', 'b', 'c']) {
      await vi.advanceTimersByTimeAsync(900);
      await answer(name);
    }
    expect(started).toEqual(['a', 'b', 'c', 'd']);
  });

  it('starts all that waits when a task is overdue: after 1 s, and 1.25 s at most', async () => {
    for (const name of ['stalled', 'a', 'b']) add(name);
    await vi.advanceTimersByTimeAsync(999);
    expect(started).toEqual(['stalled']);
    await vi.advanceTimersByTimeAsync(251);
    expect(started).toEqual(['stalled', 'a', 'b']);
  });

  it('starts tasks at once until what is overdue is answered, and then one by one again', async () => {
    for (const name of ['stalled', 'a']) add(name);
    await vi.advanceTimersByTimeAsync(1_250);
    add('b');
    expect(started).toEqual(['stalled', 'a', 'b']);
    await answer('stalled');
    add('c');
    expect(started).not.toContain('c');
    await answer('a');
    expect(started).not.toContain('c');
    await answer('b');
    expect(started).toContain('c');
  });

  it('takes no task as overdue because the process stood still', async () => {
    for (const name of ['a', 'b']) add(name);
    // One timer fires late; what came meanwhile is read after it.
    vi.setSystemTime(Date.now() + 10_000);
    await vi.advanceTimersByTimeAsync(250);
    expect(started).toEqual(['a']);
    await answer('a');
    expect(started).toEqual(['a', 'b']);
  });

  it('reports when all that was added before is answered, or overdue', async () => {
    add('a');
    add('b');
    let isAnswered = false;
    void queue.answered().then(() => (isAnswered = true));
    add('c');
    await answer('a');
    expect(isAnswered).toBe(false);
    await answer('b');
    expect([isAnswered, started]).toEqual([true, ['a', 'b', 'c']]);
    void queue.answered().then(() => (isAnswered = false));
    await vi.advanceTimersByTimeAsync(1_250);
    expect(isAnswered).toBe(false);
  });

  it('once open starts everything at once', () => {
    for (const name of ['a', 'b', 'c']) add(name);
    queue.unblock();
    add('d');
    expect(started).toEqual(['a', 'b', 'c', 'd']);
  });

  it('leaves no timer behind', async () => {
    for (const name of ['a', 'b']) add(name);
    await answer('a');
    expect(vi.getTimerCount()).toBe(0);
    await answer('b');
    expect(vi.getTimerCount()).toBe(0);
  });
});
