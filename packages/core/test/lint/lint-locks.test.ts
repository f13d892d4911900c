import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Lock, type LockManager } from '../../src/index.ts';
import { type LintOptions, lintLocks, type OrderContradiction } from '../../src/lint/index.ts';
import { locksOn } from '../fixture.ts';
import { scriptedBackend } from '../scripted-backend.ts';

/** Gives the contradictions that are found until the end of the test. */
function lint(options: LintOptions = {}): OrderContradiction[] {
  const found: OrderContradiction[] = [];
  onTestFinished(lintLocks({ onContradiction: (one) => found.push(one), ...options }));
  return found;
}

const manager = (): LockManager => locksOn(scriptedBackend()) as LockManager;

/** Takes locks one inside the other, with `run`. */
async function nest(...[first, ...others]: readonly Lock[]): Promise<void> {
  await first?.run(() => nest(...others));
}

const namesOf = ({ orders }: OrderContradiction): string[] =>
  orders.map(({ held, asked }) => `${held} ${asked}`);

const firstPart = (name: string): string => name.replace(/:.*$/, '');

afterEach(() => vi.restoreAllMocks());

describe('orders that contradict each other are found, though nobody ever waits', () => {
  test('once, with the places of both', async () => {
    const found = lint();
    const { lock } = manager();
    const takeOneWay = (): Promise<void> => lock('p').run(() => lock('q').run(() => {}));
    const takeTheOther = (): Promise<void> => lock('q').run(() => lock('p').run(() => {}));
    for (let times = 0; times < 3; times += 1) {
      await takeOneWay();
      await takeTheOther();
    }
    expect(found.map(namesOf)).toEqual([['q p', 'p q']]);
    const [{ message, orders }] = found as [OrderContradiction];
    expect(message).toContain('"q" and then "p"; elsewhere "p" and then "q"');
    for (const { heldAt, askedAt } of orders) {
      expect(heldAt).toContain('lint-locks.test.ts');
      expect(askedAt).toContain('lint-locks.test.ts');
      expect(heldAt).not.toMatch(/src[\\/]lock\.ts|node:/);
    }
    const lines = orders.flatMap(({ heldAt, askedAt }) => [heldAt, askedAt]).map((at) => at.split('\n')[0]);
    expect(new Set(lines).size).toBe(4);
  });

  test('by a warning of the process, where nobody else wants to know', async () => {
    const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
    onTestFinished(lintLocks());
    const { lock } = manager();
    await nest(lock('p'), lock('q'));
    await nest(lock('q'), lock('p'));
    expect(emit).toHaveBeenCalledOnce();
    expect(emit.mock.calls[0]?.[1]).toMatchObject({
      code: 'LOCKS_LINT_ORDER',
      detail: expect.stringContaining('lint-locks.test.ts'),
    });
  });

  test('over further locks', async () => {
    const found = lint();
    const { lock } = manager();
    await nest(lock('p'), lock('q'));
    await nest(lock('q'), lock('r'));
    await nest(lock('r'), lock('s'));
    expect(found).toEqual([]);
    await nest(lock('s'), lock('p'));
    expect(found.map(namesOf)).toEqual([['s p', 'p q', 'q r', 'r s']]);
  });

  test('over several managers, whose stores are taken to be one where they are of one kind', async () => {
    const found = lint();
    const [here, there] = [manager(), manager()];
    await nest(here.lock('p'), here.lock('q'));
    await nest(there.lock('q'), there.lock('p'));
    expect(found.map(namesOf)).toEqual([['q p', 'p q']]);
  });

  test('of leases that acquire gave, while they are held', async () => {
    const found = lint();
    const { lock } = manager();
    const take = async (first: Lock, second: Lock): Promise<void> => {
      await using _one = await first.acquire();
      await delay(1);
      await using _two = await second.acquire();
    };
    await take(lock('p'), lock('q'));
    await take(lock('q'), lock('p'));
    expect(found.map(namesOf)).toEqual([['q p', 'p q']]);
  });
});

describe('no contradiction is', () => {
  test('what is taken one after the other, or by branches side by side', async () => {
    const found = lint();
    const { lock } = manager();
    const branch = async (name: string): Promise<void> => {
      await using _lease = await lock(name).acquire();
      await delay(2);
    };
    await Promise.all([branch('p'), branch('q')]);
    await Promise.all([branch('q'), branch('p')]);
    await branch('p');
    await branch('q');
    await branch('p');
    await lock('o').run(() => Promise.all([branch('p'), branch('q')]));
    await lock('o').run(() => Promise.all([branch('q'), branch('p')]));
    expect(found).toEqual([]);
  });

  test('a set, in whatever order it names its locks', async () => {
    const found = lint();
    const { lock, all } = manager();
    await all([lock('p'), lock('q')]).run(() => {});
    await all([lock('q'), lock('p')]).run(() => {});
    await nest(lock('p'), lock('q'));
    expect(found).toEqual([]);
  });

  test('a single attempt, whose lock counts while it is held', async () => {
    const found = lint();
    const { lock } = manager();
    const attempt = (first: string, second: string): Promise<void> =>
      lock(first).run(async () => {
        await (await lock(second).tryAcquire())?.release();
        await (await lock(second).acquire({ waitMs: 0 })).release();
      });
    await nest(lock('p'), lock('q'));
    await attempt('q', 'p');
    expect(found).toEqual([]);
    await using _lease = await lock('q').tryAcquire();
    await lock('p').run(() => {});
    expect(found.map(namesOf)).toEqual([['q p', 'p q']]);
  });

  test('a lock that is re-entered', async () => {
    const found = lint();
    const locks = locksOn(scriptedBackend(), { reentrant: true });
    await nest(locks.lock('p'), locks.lock('q'), locks.lock('p'));
    expect(found).toEqual([]);
  });

  test('a name in one store, inside of a hold of it in another, with a lock between', async () => {
    const found = lint();
    const [here, there] = [manager(), manager()];
    await nest(here.lock('p'), here.lock('q'), there.lock('p'));
    await nest(here.lock('p'), there.lock('q'), there.lock('p'));
    expect(found).toEqual([]);
  });

  test('work in locks.detached', async () => {
    const found = lint();
    const locks = manager();
    await nest(locks.lock('p'), locks.lock('q'));
    await locks.lock('q').run(() => locks.detached(() => locks.lock('p').run(() => {})));
    expect(found).toEqual([]);
  });

  test('anything after the end', async () => {
    const found: OrderContradiction[] = [];
    const stop = lintLocks({ onContradiction: (one) => found.push(one) });
    const { lock } = manager();
    await nest(lock('p'), lock('q'));
    stop();
    await nest(lock('q'), lock('p'));
    expect(found).toEqual([]);
  });
});

describe('locks of a class', () => {
  test('contradict those of another', async () => {
    const found = lint({ classOf: firstPart });
    const { lock } = manager();
    await nest(lock('user:1'), lock('account:7'));
    await nest(lock('account:8'), lock('user:2'));
    expect(found.map(namesOf)).toEqual([['account:8 user:2', 'user:1 account:7']]);
  });

  test('are taken in the order of their names, or in the opposite one, and not in both', async () => {
    const found = lint({ classOf: firstPart });
    const { lock } = manager();
    await nest(lock('account:1'), lock('account:2'), lock('account:3'));
    await nest(lock('user:9'), lock('user:8'));
    expect(found).toEqual([]);
    await nest(lock('account:7'), lock('account:4'));
    expect(found.map(namesOf)).toEqual([['account:7 account:4', 'account:1 account:2']]);
  });

  test('may be in any order where their names are in one, as in a set', async () => {
    const found = lint({ classOf: (name) => name.replace(/^.*:/, '') });
    const { lock } = manager();
    await nest(lock('1:user'), lock('2:account'));
    await nest(lock('1:account'), lock('2:user'));
    expect(found).toEqual([]);
  });
});

test('a most bounds what is kept, and one warning says so', async () => {
  const emit = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const found = lint({ maxOrders: 2 });
  const { lock } = manager();
  for (const name of ['a', 'b', 'c', 'd']) await nest(lock('o'), lock(name));
  await nest(lock('d'), lock('o'));
  await nest(lock('a'), lock('o'));
  expect(found).toEqual([]);
  expect(emit.mock.calls.map(([, options]) => (options as { code: string }).code)).toEqual([
    'LOCKS_LINT_FULL',
  ]);
});

test('bad options are refused', () => {
  expect(() => lintLocks({ maxOrders: 0 })).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
  expect(() => lintLocks({ classOf: 'a' as never })).toThrow(
    expect.objectContaining({ code: 'LOCK_INVALID_ARGUMENT' }),
  );
});
