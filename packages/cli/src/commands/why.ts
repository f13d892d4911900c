import type { ChainMember, LockManager } from '@locks/core';
import { followWaits, toldBy, WAIT_NAMES } from '@locks/core/backend';
import { jsonLine, shown } from '../foreign-text.ts';
import { seconds, who } from './states.ts';
import type { Write } from './look.ts';

/** Writes for whom a lock is waited for, directly and over others, as the store tells it now. */
export async function why(locks: LockManager, name: string, json: boolean, write: Write): Promise<void> {
  const holdersOf = async (lock: string) => (await locks.inspect(lock)).holders;
  const members = followWaits(
    { name },
    {
      holdersOf: async (lock) => holdersOf(lock.name),
      async waitOf({ acquisitionId }) {
        const told = (await holdersOf(WAIT_NAMES + acquisitionId)).map(({ label }) => toldBy(label));
        return told.find((wait) => wait !== undefined);
      },
    },
  );
  const chain: ChainMember[] = [];
  for await (const member of members) chain.push(member);
  const last = chain.at(-1)?.waitsFor;
  const isCircle = chain.some((member) => member.name === last);
  write(json ? jsonLine({ name, chain, isCircle }) : `${textOf(name, chain, isCircle)}\n`);
}

function textOf(name: string, chain: readonly ChainMember[], isCircle: boolean): string {
  if (chain.length === 0) return `nobody holds ${shown(name)}`;
  const last = chain.at(-1)?.waitsFor;
  const lines = chain.map((member) => {
    const { heldForMs, expiresInMs, waitsFor } = member;
    const since = heldForMs === undefined ? '' : ` for ${seconds(heldForMs)}`;
    const left = expiresInMs === undefined ? '' : `, ${seconds(expiresInMs)} left unless it is renewed`;
    const wait = waitsFor === undefined ? 'tells of no wait' : `waits for ${shown(waitsFor)}`;
    return `${shown(member.name)} is held by ${who(member)}${since}${left}; its holder ${wait}`;
  });
  if (isCircle) lines.push(`a circle: none of them goes on before one gives up`);
  else if (last !== undefined) lines.push(`nobody holds ${shown(last)}`);
  return lines.join('\n');
}
