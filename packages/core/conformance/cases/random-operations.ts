import assert from 'node:assert/strict';
import type { LockMode } from '../../src/backend/types.ts';
import type { Semaphore } from '../../src/compose/semaphore.ts';
import type { LockManager } from '../../src/create-locks.ts';
import type { Downgradable, Lease } from '../../src/lease.ts';
import type { Lock } from '../../src/lock.ts';
import type { ConformanceCase } from '../case.ts';
import { assertCompatible, machineNow, type CriticalSection } from '../critical-section.ts';
import { type Modelled, ResourceModel } from '../model.ts';
import { fifo, needs, waiters } from '../needs.ts';
import { SafetyViolation } from '../safety-violation.ts';
import type { CaseContext } from '../case-context.ts';

const STEPS = 45;
const CLIENTS = 3;
const LIMITS: readonly [number, number] = [2, 4];

export const randomOperationCases: readonly ConformanceCase[] = [
  {
    id: 'fairness/as-the-model-says',
    clause: '§15.2',
    title: 'after each of many random steps the store shows the holders and waiters of a model of the queue',
    ...needs(fifo, waiters),
    async run(context) {
      const { modes } = await context.backend().then((backend) => backend.capabilities);
      await Promise.all([
        new Walk(context, modes.includes('shared') ? ['exclusive', 'shared'] : ['exclusive']).run(),
        ...(modes.includes('permit') ? [new Walk(context, ['permit']).run()] : []),
      ]);
    },
  },
  {
    id: 'exclusion/random-kinds-at-once',
    clause: '§15.1',
    title:
      'clients take random locks, shares, permits and sets of three resources, and no two holders exclude each other',
    async run(context) {
      const { modes } = await context.backend().then((backend) => backend.capabilities);
      const names = {
        lock: context.name('lock'),
        other: context.name('other'),
        slots: context.name('slots'),
      };
      const sections = new Map<string, CriticalSection[]>(Object.values(names).map((name) => [name, []]));
      const contend = async (who: string): Promise<void> => {
        const { locks } = await context.client({ waitMs: 30_000 });
        const { random } = context;
        for (let round = 0; round < 8; round += 1) {
          const members: Lock[] = [];
          for (const name of [names.lock, names.other]) {
            if (random.between(0, 1) === 0) continue;
            const shared = modes.includes('shared') && random.between(0, 1) === 0;
            members.push(shared ? locks.readWriteLock(name).read : locks.lock(name));
          }
          if (modes.includes('permit') && random.between(0, 1) === 0)
            members.push(locks.semaphore(names.slots, 2));
          if (members.length === 0) members.push(locks.lock(names.lock));
          await locks.all(members).run(async ({ leases }) => {
            const enteredAt = machineNow();
            await context.sleep(random.between(0, 2));
            for (const { name, mode } of leases) {
              sections.get(name)?.push({ who: `${who} #${round}`, enteredAt, leftAt: machineNow(), mode });
            }
          });
        }
      };
      await Promise.all(['a', 'b', 'c', 'd'].map(contend));
      for (const history of sections.values()) assertCompatible(history, context.seed);
    },
  },
];

interface Waiting {
  readonly asked: Modelled;
  readonly abort: AbortController;
  lease: Lease | undefined;
}

/** A random walk over one resource, compared with the model after every step. */
class Walk {
  readonly #context: CaseContext;
  readonly #kinds: readonly LockMode['kind'][];
  readonly #name: string;
  readonly #model = new ResourceModel();
  readonly #held = new Map<string, Lease & Partial<Downgradable>>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #steps: string[] = [];
  #limit: number = LIMITS[0];
  #labels = 0;

  constructor(context: CaseContext, kinds: readonly LockMode['kind'][]) {
    this.#context = context;
    this.#kinds = kinds;
    this.#name = context.name(kinds.join(' '));
  }

  async run(): Promise<void> {
    const clients: LockManager[] = [];
    for (let index = 0; index < CLIENTS; index += 1) {
      clients.push((await this.#context.client({ waitMs: 60_000 })).locks);
    }
    for (let step = 0; step < STEPS; step += 1) {
      await this.#step(clients[this.#context.random.between(0, CLIENTS - 1)] as LockManager);
      await this.#agree(clients[0] as LockManager);
    }
    for (const { abort } of this.#waiting.values()) abort.abort();
    await Promise.all([...this.#held.values()].map((lease) => lease.release()));
  }

  async #step(locks: LockManager): Promise<void> {
    const dice = this.#context.random.between(0, 99);
    if (dice < 20) return this.#try(locks);
    if (dice < 52) return this.#enqueue(locks);
    if (dice < 84) return this.#release();
    if (dice < 92) return this.#abort();
    return this.#kinds.includes('permit') ? this.#resize(locks) : this.#downgrade();
  }

  async #try(locks: LockManager): Promise<void> {
    const asked = this.#ask('tries');
    const expected = this.#model.tries(asked);
    const lease = await this.#lockFor(locks, asked.mode).tryAcquire(this.#options(asked));
    if (lease !== undefined) this.#held.set(asked.label, lease);
    if (lease !== undefined && !expected) throw new SafetyViolation(this.#explain('it was granted'));
    assert.equal(lease !== undefined, expected, this.#explain('it was refused'));
  }

  async #enqueue(locks: LockManager): Promise<void> {
    const asked = this.#ask('waits for');
    this.#model.enqueues(asked);
    const waiting: Waiting = { asked, abort: new AbortController(), lease: undefined };
    this.#waiting.set(asked.label, waiting);
    const options = { ...this.#options(asked), signal: waiting.abort.signal };
    this.#lockFor(locks, asked.mode)
      .acquire(options)
      .then(
        (lease) => {
          this.#held.set(asked.label, lease);
          this.#waiting.delete(asked.label);
        },
        () => this.#waiting.delete(asked.label),
      );
  }

  async #release(): Promise<void> {
    const label = this.#oneOf(this.#held);
    if (label === undefined) return;
    this.#note(label, 'releases');
    this.#model.leaves(label);
    const lease = this.#held.get(label);
    this.#held.delete(label);
    await lease?.release();
  }

  async #abort(): Promise<void> {
    const label = this.#oneOf(this.#waiting);
    if (label === undefined) return;
    this.#note(label, 'gives up');
    this.#model.leaves(label);
    this.#waiting.get(label)?.abort.abort();
  }

  async #downgrade(): Promise<void> {
    const label = this.#oneOf(this.#held, ({ mode }) => mode.kind === 'exclusive');
    if (label === undefined || !this.#kinds.includes('shared')) return;
    this.#note(label, 'downgrades');
    this.#model.downgrades(label);
    await this.#held.get(label)?.downgrade?.();
  }

  async #resize(locks: LockManager): Promise<void> {
    // An unused semaphore forgets its limit.
    if (this.#held.size + this.#waiting.size === 0) return;
    const slots = locks.semaphore(this.#name, this.#limit);
    this.#limit = this.#context.random.between(...LIMITS);
    this.#note('the operator', `resizes to ${this.#limit}`);
    this.#model.resizes(this.#limit);
    await slots.resize(this.#limit);
  }

  /** Waits until the store shows the holders and waiters of the model. */
  async #agree(locks: LockManager): Promise<void> {
    const { slackMs, idleGapMs } = this.#context.timing;
    const { holders, queue } = this.#model;
    const expected = say(
      holders.map(({ label }) => label).sort(),
      queue.map(({ label }) => label),
    );
    let seen = '';
    const agrees = async (): Promise<boolean> => {
      const state = await locks.inspect(this.#name);
      const labels = state.holders.map(({ label }) => label ?? '?').sort();
      seen = say(
        labels,
        state.waiters.map(({ label }) => label ?? '?'),
      );
      return seen === expected && holders.every(({ label }) => this.#held.has(label));
    };
    await this.#context.until('store and model agree', agrees, idleGapMs + 5 * slackMs).catch(() => {
      assert.fail(this.#explain(`the model says ${expected}, the store ${seen}`));
    });
  }

  #ask(what: string): Modelled {
    const { random } = this.#context;
    const kind = this.#kinds[random.between(0, this.#kinds.length - 1)] as LockMode['kind'];
    const weight = random.between(1, LIMITS[0]);
    const mode: LockMode = kind === 'permit' ? { kind, limit: this.#limit, weight } : { kind };
    this.#labels += 1;
    const label = `${kind}-${this.#labels}`;
    this.#note(label, what + (kind === 'permit' ? ` ${weight} of ${this.#limit}` : ''));
    return { label, mode };
  }

  #lockFor(locks: LockManager, mode: LockMode): Lock | Semaphore {
    switch (mode.kind) {
      case 'exclusive':
        return this.#kinds.includes('shared')
          ? (locks.readWriteLock(this.#name).write as Lock)
          : locks.lock(this.#name);
      case 'shared':
        return locks.readWriteLock(this.#name).read;
      case 'permit':
        return locks.semaphore(this.#name, mode.limit);
      default:
        return mode satisfies never;
    }
  }

  #options({ label, mode }: Modelled): { label: string; weight?: number } {
    return mode.kind === 'permit' ? { label, weight: mode.weight } : { label };
  }

  #oneOf<T>(among: ReadonlyMap<string, T>, matches: (value: T) => boolean = () => true): string | undefined {
    const labels = [...among].filter(([, value]) => matches(value)).map(([label]) => label);
    return labels.length === 0 ? undefined : labels[this.#context.random.between(0, labels.length - 1)];
  }

  #note(who: string, what: string): void {
    this.#steps.push(`${who} ${what}`);
  }

  #explain(fault: string): string {
    return `After ${this.#steps.length} steps ${fault}. The last of them:\n  ${this.#steps.slice(-12).join('\n  ')}`;
  }
}

function say(holders: readonly string[], queue: readonly string[]): string {
  return `[${holders.join(' ')}] before [${queue.join(' ')}]`;
}
