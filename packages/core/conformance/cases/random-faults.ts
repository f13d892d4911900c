import assert from 'node:assert/strict';
import type { BackendCapabilities, LockBackend } from '../../src/backend/types.ts';
import type { LockManager } from '../../src/create-locks.ts';
import { isLockError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease.ts';
import type { Lock } from '../../src/lock.ts';
import { aroundCalls } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { NoReply } from '../delegate.ts';
import { assertCompatible, assertExclusive, machineNow, type CriticalSection } from '../critical-section.ts';
import { leaseTenure, needs } from '../needs.ts';
import type { CaseContext } from '../case-context.ts';

const CLIENTS = 6;
const ROUNDS = 12;
const LATE_MS = 6;
const LIMIT = 2;

export const randomFaultCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/amid-random-faults',
    clause: '§11.1',
    title:
      'while calls are late, repeated, or lose their replies at random, no two holders exclude each other, and everything is free afterwards',
    ...needs(leaseTenure),
    async run(context) {
      const { capabilities } = await context.backend();
      const { ttlMs, slackMs, idleGapMs } = context.timing;
      const resources = new ContendedResources(context, capabilities);
      const contend = async (who: string): Promise<void> => {
        const { locks } = await context.client({
          ttlMs,
          waitMs: 20 * slackMs,
          wrap: (real) => unsteady(context, real),
        });
        for (let round = 0; round < ROUNDS; round += 1) await resources.useSome(locks, `${who} #${round}`);
      };
      await Promise.all(Array.from({ length: CLIENTS }, (_, index) => contend(`client ${index}`)));
      resources.assertSafe();
      const { locks } = await context.client();
      const waitMs = 2 * ttlMs + idleGapMs + 10 * slackMs;
      for (const lease of await resources.takeAll(locks, waitMs)) await lease.release();
    },
  },
];

/** A backend of whose calls 6 % never arrive, 8 % lose their replies, 16 % are late and 8 % are sent twice. */
function unsteady(context: CaseContext, real: LockBackend): LockBackend {
  const { random } = context;
  const late = (): Promise<void> => context.sleep(random.between(0, LATE_MS));
  return aroundCalls(real, async (sent, send) => {
    const dice = random.between(1, 100);
    if (dice <= 6) throw new NoReply(sent);
    if (dice <= 14) {
      await send();
      throw new NoReply(sent);
    }
    if (dice <= 22) await late();
    // The call is sent twice, as by a client that reconnected.
    if (dice > 92 && sent !== 'awaitTurn') await send();
    const answer = await send();
    if (dice > 22 && dice <= 30) await late();
    return answer;
  });
}

/** Three resources, and the history of their critical sections. */
class ContendedResources {
  readonly #context: CaseContext;
  readonly #modes: BackendCapabilities['modes'];
  readonly #alone: string;
  readonly #mixed: string;
  readonly #slots: string;
  readonly #sections = new Map<string, CriticalSection[]>();

  constructor(context: CaseContext, { modes }: BackendCapabilities) {
    this.#context = context;
    this.#modes = modes;
    this.#alone = context.name('alone');
    this.#mixed = context.name('mixed');
    this.#slots = context.name('slots');
    for (const name of [this.#alone, this.#mixed, this.#slots]) this.#sections.set(name, []);
  }

  /** Takes one or two locks at once and releases them; one acquire in six aborts soon. */
  async useSome(locks: LockManager, who: string): Promise<void> {
    const { random } = this.#context;
    const members = this.#some(locks);
    const signal = random.between(1, 6) === 1 ? AbortSignal.timeout(random.between(1, 15)) : undefined;
    const options = signal && { signal };
    try {
      const [only] = members;
      await using held =
        members.length === 1
          ? await (only as Lock).acquire(options)
          : await locks.all(members).acquire(options);
      await this.#stayInside('leases' in held ? held.leases : [held as Lease], who);
    } catch (thrown) {
      // A loss that ended the section is found again by the disposal: the section's own error is the one to judge.
      const error: unknown = (thrown as { readonly suppressed?: unknown }).suppressed ?? thrown;
      // Expected are the own abort, a store that gave no answer, and a wait behind a ghost.
      if (error !== signal?.reason) assert.ok(isLockError(error), String(error));
    }
  }

  /** Takes all three resources. A ghost may hold one for another ttl; a ghost permit conflicts with other kinds of locks. */
  takeAll(locks: LockManager, waitMs: number): Promise<Lease[]> {
    const slots = this.#modes.includes('permit')
      ? locks.semaphore(this.#slots, LIMIT).acquire({ weight: LIMIT, waitMs })
      : locks.lock(this.#slots).acquire({ waitMs });
    const others = [this.#alone, this.#mixed].map((name) => locks.lock(name).acquire({ waitMs }));
    return Promise.all([slots, ...others]);
  }

  assertSafe(): void {
    for (const [name, sections] of this.#sections) {
      if (name === this.#alone) assertExclusive(sections, this.#context.seed);
      else assertCompatible(sections, this.#context.seed);
    }
    const count = [...this.#sections.values()].flat().length;
    assert.ok(count > (CLIENTS * ROUNDS) / 2, `only ${count} critical sections`);
  }

  #some(locks: LockManager): Lock[] {
    const { random } = this.#context;
    const shared = this.#modes.includes('shared') && random.between(0, 1) === 0;
    const all: Lock[] = [
      locks.lock(this.#alone),
      shared ? locks.readWriteLock(this.#mixed).read : locks.lock(this.#mixed),
    ];
    if (this.#modes.includes('permit')) all.push(locks.semaphore(this.#slots, LIMIT));
    const first = random.between(0, all.length - 1);
    return random.between(0, 2) > 0 ? [all[first] as Lock] : all.filter((_, index) => index !== first);
  }

  async #stayInside(leases: readonly Lease[], who: string): Promise<void> {
    const enteredAt = machineNow();
    const ends = leases.map(({ validForMs }) => enteredAt + validForMs);
    await this.#context.sleep(this.#context.random.between(0, 6));
    const leftAt = machineNow();
    for (const [index, { name, mode, validForMs, fencingToken }] of leases.entries()) {
      const end = ends[index] as number;
      // The lease was lost before its holder could enter: this process stood still.
      if (end === enteredAt) continue;
      // The lease was lost meanwhile: its holder left at the end that it knew.
      const until = validForMs > 0 ? leftAt : Math.min(leftAt, end);
      const section = { who, enteredAt, leftAt: until, token: fencingToken?.toString(), mode };
      this.#sections.get(name)?.push(section);
    }
  }
}
