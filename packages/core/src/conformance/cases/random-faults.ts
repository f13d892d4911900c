import assert from 'node:assert/strict';
import type { BackendCapabilities, LockBackend } from '../../backend/types.ts';
import type { LockManager } from '../../create-locks.ts';
import { isLockError } from '../../errors.ts';
import type { Lease } from '../../lease.ts';
import type { Lock } from '../../lock.ts';
import { aroundCalls } from '../around-calls.ts';
import type { ConformanceCase } from '../case.ts';
import { NoReply } from '../delegate.ts';
import { assertCompatible, assertExclusive, machineNow, type Stay } from '../history.ts';
import { leaseTenure, needs } from '../needs.ts';
import type { Stage } from '../stage.ts';

const CLIENTS = 6;
const ROUNDS = 12;
const LATE_MS = 6;
const LIMIT = 2;

export const randomFaultCases: readonly ConformanceCase[] = [
  {
    id: 'exclusion/amid-random-faults',
    clause: '§11.1',
    title:
      'calls are late, repeated, or lose their replies, at random: never two inside that exclude each other, and all is free after it',
    ...needs(leaseTenure),
    async run(stage) {
      const { capabilities } = await stage.backend();
      const { ttlMs, slackMs, idleGapMs } = stage.timing;
      const ward = new Ward(stage, capabilities);
      const patient = async (who: string): Promise<void> => {
        const { locks } = await stage.client({
          ttlMs,
          waitMs: 20 * slackMs,
          wrap: (real) => unsteady(stage, real),
        });
        for (let round = 0; round < ROUNDS; round += 1) await ward.visit(locks, `${who} #${round}`);
      };
      await Promise.all(Array.from({ length: CLIENTS }, (_, index) => patient(`client ${index}`)));
      ward.judge();
      const { locks } = await stage.client();
      const waitMs = 2 * ttlMs + idleGapMs + 10 * slackMs;
      for (const lease of await ward.takeAll(locks, waitMs)) await lease.release();
    },
  },
];

/** Of a hundred calls six never arrive, eight lose their replies, and sixteen are late; eight are sent twice. */
function unsteady(stage: Stage, real: LockBackend): LockBackend {
  const { random } = stage;
  const late = (): Promise<void> => stage.sleep(random.between(0, LATE_MS));
  return aroundCalls(real, async (sent, send) => {
    const dice = random.between(1, 100);
    if (dice <= 6) throw new NoReply(sent);
    if (dice <= 14) {
      await send();
      throw new NoReply(sent);
    }
    if (dice <= 22) await late();
    // As by a client that connected anew.
    if (dice > 92 && sent !== 'awaitTurn') await send();
    const answer = await send();
    if (dice > 22 && dice <= 30) await late();
    return answer;
  });
}

/** Three resources, and who was inside. */
class Ward {
  readonly #stage: Stage;
  readonly #modes: BackendCapabilities['modes'];
  readonly #alone: string;
  readonly #mixed: string;
  readonly #slots: string;
  readonly #stays = new Map<string, Stay[]>();

  constructor(stage: Stage, { modes }: BackendCapabilities) {
    this.#stage = stage;
    this.#modes = modes;
    this.#alone = stage.name('alone');
    this.#mixed = stage.name('mixed');
    this.#slots = stage.name('slots');
    for (const name of [this.#alone, this.#mixed, this.#slots]) this.#stays.set(name, []);
  }

  /** Takes some locks, one or two of them at once, and gives them back; one in six gives up soon. */
  async visit(locks: LockManager, who: string): Promise<void> {
    const { random } = this.#stage;
    const members = this.#some(locks);
    const signal = random.between(1, 6) === 1 ? AbortSignal.timeout(random.between(1, 15)) : undefined;
    const options = signal && { signal };
    try {
      const [only] = members;
      await using held =
        members.length === 1
          ? await (only as Lock).acquire(options)
          : await locks.all(members).acquire(options);
      await this.#stay('leases' in held ? held.leases : [held as Lease], who);
    } catch (error) {
      // Its own doing, or a store that gave no answer, or a wait behind what nobody holds any more.
      if (error !== signal?.reason) assert.ok(isLockError(error), String(error));
    }
  }

  /** A ghost may be there for one ttl more: of a permit too, which conflicts with any other kind of lock. */
  takeAll(locks: LockManager, waitMs: number): Promise<Lease[]> {
    const slots = this.#modes.includes('permit')
      ? locks.semaphore(this.#slots, LIMIT).acquire({ weight: LIMIT, waitMs })
      : locks.lock(this.#slots).acquire({ waitMs });
    const others = [this.#alone, this.#mixed].map((name) => locks.lock(name).acquire({ waitMs }));
    return Promise.all([slots, ...others]);
  }

  judge(): void {
    for (const [name, stays] of this.#stays) {
      if (name === this.#alone) assertExclusive(stays, this.#stage.seed);
      else assertCompatible(stays, this.#stage.seed);
    }
    const count = [...this.#stays.values()].flat().length;
    assert.ok(count > (CLIENTS * ROUNDS) / 2, `they got in ${count} times`);
  }

  #some(locks: LockManager): Lock[] {
    const { random } = this.#stage;
    const shared = this.#modes.includes('shared') && random.between(0, 1) === 0;
    const all: Lock[] = [
      locks.lock(this.#alone),
      shared ? locks.readWriteLock(this.#mixed).read : locks.lock(this.#mixed),
    ];
    if (this.#modes.includes('permit')) all.push(locks.semaphore(this.#slots, LIMIT));
    const first = random.between(0, all.length - 1);
    return random.between(0, 2) > 0 ? [all[first] as Lock] : all.filter((_, index) => index !== first);
  }

  async #stay(leases: readonly Lease[], who: string): Promise<void> {
    const enteredAt = machineNow();
    const ends = leases.map(({ validForMs }) => enteredAt + validForMs);
    await this.#stage.sleep(this.#stage.random.between(0, 6));
    const leftAt = machineNow();
    for (const [index, { name, mode, validForMs, fencingToken }] of leases.entries()) {
      const end = ends[index] as number;
      // Lost before it could enter: this process stood still.
      if (end === enteredAt) continue;
      // Lost meanwhile: it was not inside for longer than it could know.
      const until = validForMs > 0 ? leftAt : Math.min(leftAt, end);
      const stay = { who, enteredAt, leftAt: until, token: fencingToken?.toString(), mode };
      this.#stays.get(name)?.push(stay);
    }
  }
}
