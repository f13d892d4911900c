import { MemoryStore, memoryBackend } from '@locks/memory';
import { expect, it } from 'vitest';
import { type LockManagerSnapshot, type WebLocks, webLocks } from '../src/index.ts';
import { failure } from './hold.ts';
import { randomFrom } from './random-from.ts';
import { type ModelRequest, SpecifiedManager } from './specified-manager.ts';

const NAMES = ['a', 'b'];
const STEPS = 150;

interface Live {
  readonly model: ModelRequest;
  readonly outcome: Promise<unknown>;
  readonly controller: AbortController;
  release(): void;
}

/** Several clients and the model, in step. */
class Trial {
  readonly model = new SpecifiedManager();
  readonly clients: WebLocks[];
  readonly live = new Map<number, Live>();
  readonly called: number[] = [];
  #ids = 0;

  constructor(clients: WebLocks[]) {
    this.clients = clients;
  }

  async request(
    client: number,
    name: string,
    mode: 'exclusive' | 'shared',
    how: 'plain' | 'ifAvailable' | 'steal',
  ) {
    const model = { id: (this.#ids += 1), client, name, mode };
    const expected = this.model.request(model, how);
    const controller = new AbortController();
    const options = how === 'plain' ? { mode, signal: controller.signal } : { mode, [how]: true };
    let release!: () => void;
    const work = new Promise<void>((resolve) => (release = resolve));
    const outcome = failure(
      (this.clients[client] as WebLocks).request(name, options, (lock) => {
        if (lock === null) return 'not available';
        this.called.push(model.id);
        return work;
      }),
    );
    this.live.set(model.id, { model, outcome, controller, release });
    if (expected === null) {
      expect(await outcome).toEqual({ resolved: 'not available' });
      this.live.delete(model.id);
    }
    await this.clients[client]?.query();
    // A hold that is no longer in the model was stolen.
    for (const [id, { model: one, outcome: end }] of this.live) {
      if (this.model.held.includes(one) || this.model.queue.includes(one)) continue;
      expect(await end).toBe('AbortError');
      this.live.delete(id);
    }
  }

  async release(request: ModelRequest): Promise<void> {
    const { release, outcome } = this.live.get(request.id) as Live;
    this.live.delete(request.id);
    this.model.remove(request);
    release();
    expect(await outcome).toEqual({ resolved: undefined });
  }

  async abort(request: ModelRequest): Promise<void> {
    const { controller, outcome } = this.live.get(request.id) as Live;
    this.live.delete(request.id);
    this.model.remove(request);
    controller.abort();
    expect(await outcome).toBe('AbortError');
    expect(this.called).not.toContain(request.id);
  }

  async compare(): Promise<void> {
    const { held, queue } = this.model;
    const say = ({ client, mode, name }: ModelRequest): string => `${name} ${mode} ${client}`;
    for (const locks of this.clients) {
      const { held: shownHeld, pending } = this.#say(await locks.query());
      expect(shownHeld.toSorted()).toEqual(held.map(say).toSorted());
      for (const name of NAMES) {
        expect(pending.filter((one) => one.startsWith(name))).toEqual(
          queue.filter((one) => one.name === name).map(say),
        );
      }
    }
    for (const { id } of held) expect(this.called).toContain(id);
    for (const { id } of queue) expect(this.called).not.toContain(id);
  }

  #say({ held, pending }: LockManagerSnapshot): { held: string[]; pending: string[] } {
    const ids = this.clients.map(({ clientId }) => clientId);
    const say = ({ clientId, mode, name }: LockManagerSnapshot['held'][number]): string =>
      `${name} ${mode} ${ids.indexOf(clientId)}`;
    return { held: held.map(say), pending: pending.map(say) };
  }
}

it.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'does what the specification does, step by step (seed %i)',
  async (seed) => {
    const random = randomFrom(seed);
    const backend = memoryBackend(new MemoryStore());
    const trial = new Trial([1, 2, 3].map(() => webLocks(backend)));
    for (let step = 0; step < STEPS; step += 1) {
      const { held, queue } = trial.model;
      const client = random(3);
      const name = NAMES[random(NAMES.length)] as string;
      const mode = random(2) === 0 ? 'shared' : 'exclusive';
      const what = random(20);
      if (what < 8) await trial.request(client, name, mode, 'plain');
      else if (what < 11) await trial.request(client, name, mode, 'ifAvailable');
      else if (what < 12) await trial.request(client, name, 'exclusive', 'steal');
      else if (what < 17 && held.length > 0) await trial.release(held[random(held.length)] as ModelRequest);
      else if (queue.length > 0) await trial.abort(queue[random(queue.length)] as ModelRequest);
      await trial.compare();
    }
    for (const locks of trial.clients) await locks.close();
  },
);

it('lets every request come to an end, whatever is asked at once', async () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const random = randomFrom(seed);
    const backend = memoryBackend();
    const clients = [webLocks(backend), webLocks(backend)];
    const inside = new Map<string, number>();
    const requests = Array.from({ length: 60 }, async () => {
      const locks = clients[random(2)] as WebLocks;
      const name = NAMES[random(2)] as string;
      const controller = new AbortController();
      const how = [{ signal: controller.signal }, {}, { ifAvailable: true }][random(3)] as object;
      const ticks = random(12);
      const outcome = failure(
        locks.request(name, how, async (lock) => {
          if (lock === null) return;
          inside.set(name, (inside.get(name) ?? 0) + 1);
          expect(inside.get(name)).toBe(1);
          for (let tick = 0; tick < ticks; tick += 1) await Promise.resolve();
          inside.set(name, 0);
        }),
      );
      for (let tick = 0; tick < ticks * 2; tick += 1) await Promise.resolve();
      controller.abort();
      return outcome;
    });
    const outcomes = await Promise.all(requests);
    expect(outcomes.filter((one) => one !== 'AbortError' && typeof one === 'string')).toEqual([]);
    expect(await clients[0]?.query()).toEqual({ held: [], pending: [] });
    for (const locks of clients) await locks.close();
  }
});
