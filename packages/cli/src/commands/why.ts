import type { ChainMember, Holder, LockManager } from '@locks/core';
import {
  endlessWaits,
  followWaits,
  isAcquisitionId,
  type ToldWait,
  toldBy,
  WAIT_NAMES,
} from '@locks/core/backend';
import { jsonLine, shown } from '../foreign-text.ts';
import { seconds, who } from './states.ts';
import type { Write } from './look.ts';

/** Writes for whom a lock is waited for, directly and over others, as the store tells it now. */
export async function why(locks: LockManager, name: string, json: boolean, write: Write): Promise<void> {
  const reading = new Reading(locks);
  const chains = followWaits(
    { name },
    {
      holdersOf: (lock) => reading.holdersOf(lock.name),
      waitOf: async ({ acquisitionId }) => (await reading.waitsOf(acquisitionId))[0],
    },
  );
  let chain: readonly ChainMember[] = [];
  for await (const known of chains) chain = known;
  const last = chain.at(-1);
  const end = last?.waitsFor === undefined ? '' : await endOf(last, last.waitsFor, reading);
  write(json ? jsonLine({ name, chain, isCircle: end === CIRCLE }) : `${textOf(name, chain, end)}\n`);
}

const CIRCLE = 'a circle: none of them goes on before one gives up';

/** What the store has told, each part of it once. */
class Reading {
  readonly holders = new Map<string, readonly Holder[]>();
  readonly #waits = new Map<string, readonly ToldWait[]>();
  readonly #locks: LockManager;

  constructor(locks: LockManager) {
    this.#locks = locks;
  }

  async holdersOf(name: string): Promise<readonly Holder[]> {
    const holders = this.holders.get(name) ?? (await this.#locks.inspect(name)).holders;
    this.holders.set(name, holders);
    return holders;
  }

  /** The waits that a hold tells of: none where it is of another program, whose id may be too long for a name. */
  async waitsOf(acquisitionId: string): Promise<readonly ToldWait[]> {
    let waits = this.#waits.get(acquisitionId);
    if (waits !== undefined) return waits;
    const told = isAcquisitionId(acquisitionId)
      ? (await this.#locks.inspect(WAIT_NAMES + acquisitionId)).holders
      : [];
    waits = told.flatMap(({ label }) => toldBy(label) ?? []);
    this.#waits.set(acquisitionId, waits);
    return waits;
  }

  /** Whether the wait that a chain followed from a hold never ends, as every way out is closed: each holder of these locks counts, not only those of one chain. */
  async isEndless(acquisitionId: string): Promise<boolean> {
    for (const holder of [...this.holders.values()].flat()) await this.waitsOf(holder.acquisitionId);
    const states = [...this.holders].map(([name, holders]) => ({ name, holders }));
    const endless = endlessWaits(states, (id) => this.#waits.get(id) ?? []);
    const [followed] = await this.waitsOf(acquisitionId);
    return followed !== undefined && endless.has(followed.id);
  }
}

/** How a chain ends whose last holder waits. */
async function endOf({ acquisitionId }: ChainMember, waitsFor: string, reading: Reading): Promise<string> {
  const holders = reading.holders.get(waitsFor);
  if (holders === undefined) return 'and so on';
  if (holders.length === 0) return `nobody holds ${shown(waitsFor)}`;
  if (await reading.isEndless(acquisitionId)) return CIRCLE;
  return 'who holds that stands above, and it is no circle: one of these waits may still end';
}

function textOf(name: string, chain: readonly ChainMember[], end: string): string {
  if (chain.length === 0) return `nobody holds ${shown(name)}`;
  const lines = chain.map((member) => {
    const { heldForMs, expiresInMs, waitsFor } = member;
    const since = heldForMs === undefined ? '' : ` for ${seconds(heldForMs)}`;
    const left = expiresInMs === undefined ? '' : `, ${seconds(expiresInMs)} left unless it is renewed`;
    const wait = waitsFor === undefined ? 'tells of no wait' : `waits for ${shown(waitsFor)}`;
    return `${shown(member.name)} is held by ${who(member)}${since}${left}; its holder ${wait}`;
  });
  if (end !== '') lines.push(end);
  return lines.join('\n');
}
