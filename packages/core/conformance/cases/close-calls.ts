import assert from 'node:assert/strict';
import type { Grant, LockBackend } from '../../src/backend/types.ts';
import { aroundCalls, type StoreCall } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { delegate } from '../delegate.ts';
import type { CaseContext } from '../case-context.ts';
import { watch } from '../waiter.ts';

/** Core may need a turn or two of the event loop to react to a grant. */
const SETTLE_MS = 20;

export const closeCallCases: readonly ConformanceCase[] = [
  {
    id: 'close/no-call-after',
    clause: '§12.4',
    title: 'no method of a backend is called after its close, also when a grant arrives later',
    async run(context) {
      const watched = new Watched();
      const { locks, backend } = await context.client({ wrap: watched.wrap });
      const lease = await locks.lock(context.name()).acquire();
      const held = await locks.lock(context.name()).acquire();
      const waits: Promise<unknown>[] = [];
      const attempted = context.name();
      watched.holdBack(attempted);
      waits.push(locks.lock(attempted).acquire());
      if (backend.awaitTurn !== undefined) {
        const name = context.name();
        await occupy(context, name);
        watched.holdBack(name);
        waits.push(locks.lock(name).acquire());
      }
      waits.forEach(watch);
      await context.until(
        'all calls wait for the answers that are held back',
        () => watched.heldBack === waits.length,
      );
      await lease.release();
      await locks.close();
      for (const wait of waits) await assert.rejects(wait, { code: 'LOCK_CLOSED' });
      watched.answer();
      await lease.release();
      await assert.rejects(held.renew(), { code: 'LOCK_LOST' });
      await assert.rejects(held.release(), { code: 'LOCK_LOST' });
      await assert.rejects(locks.inspect(lease.name), { code: 'LOCK_CLOSED' });
      await locks.close();
      await context.sleep(SETTLE_MS);
      assert.deepEqual(watched.late, []);
    },
  },
];

async function occupy(context: CaseContext, name: string): Promise<void> {
  const { locks } = await context.client();
  await locks.lock(name).acquire();
}

/** Records the calls that come after close. It holds back the answers to some earlier calls, and grants them on demand. */
class Watched {
  readonly late: string[] = [];
  heldBack = 0;
  #closed = false;
  readonly #names = new Set<string>();
  readonly #answers: (() => void)[] = [];

  readonly wrap = (backend: LockBackend): LockBackend => {
    const watched = aroundCalls(backend, (sent, send) => {
      this.#note(sent);
      return send();
    });
    const { awaitTurn } = watched;
    return delegate(watched, {
      attempt: async (...args) => {
        const attempt = await watched.attempt(...args);
        const isHeldBack = attempt.status === 'granted' && this.#names.has(args[0].resource);
        if (isHeldBack) await this.#untilAnswered();
        return attempt;
      },
      ...(awaitTurn && {
        awaitTurn: async (request, call) => {
          if (!this.#names.has(request.resource)) return awaitTurn(request, call);
          const grant: Grant = { request, fencingToken: 1n, countedFrom: call.now() };
          await this.#untilAnswered();
          return grant;
        },
      }),
      close: () => {
        this.#note('close');
        this.#closed = true;
        return backend.close();
      },
    });
  };

  holdBack(name: string): void {
    this.#names.add(name);
  }

  answer(): void {
    for (const answer of this.#answers.splice(0)) answer();
  }

  #note(sent: StoreCall | 'close'): void {
    if (this.#closed) this.late.push(sent);
  }

  #untilAnswered(): Promise<void> {
    this.heldBack += 1;
    return new Promise((resolve) => this.#answers.push(resolve));
  }
}
