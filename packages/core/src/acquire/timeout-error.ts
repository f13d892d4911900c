import type { Holder } from '../backend/types.ts';
import type { Engine } from '../engine.ts';
import { type LockError, quote } from '../errors.ts';
import { inspectResource } from '../inspect.ts';
import { Patience } from './patience.ts';

/** The holder is looked up for the message alone: not for long. */
const LOOK_UP_MS = 100;

/** Looks up who holds while a wait is in its last moments, so that the message does not prolong the wait. */
export class HolderLookUp {
  readonly #bell: Patience;
  holders: readonly Holder[] | undefined;

  constructor(engine: Engine, resource: string, startedAt: number, deadline: number) {
    const ahead = Math.min(LOOK_UP_MS, (deadline - startedAt) / 2);
    const bell = new Patience(engine.patiences, deadline - ahead);
    this.#bell = bell;
    // A promise of its own: on a shared one every wait would leave its callbacks for ever.
    void bell.guard(new Promise<never>(() => {})).then(async () => {
      if (bell.interruption === 'deadline') this.holders = await lookUpHolders(engine, resource, ahead);
    });
  }

  stop(): void {
    this.#bell.done();
  }
}

/** `LOCK_TIMEOUT`, saying who holds and, when it is this process, what nesting needs. */
export function timeoutError(
  engine: Engine,
  resource: string,
  waitedMs: number,
  holders: readonly Holder[] | undefined,
): LockError {
  const waited = waitedMs < 1 ? 'at once' : `after ${Math.round(waitedMs)} ms`;
  const parts = [`Gave up on ${quote(resource)} ${waited}: ${sayHolders(holders)}.`];
  if ([...engine.keeper.holds].some((hold) => hold.grant.request.resource === resource)) {
    parts.push(
      'This process holds it itself. If the waiting code runs inside the holding code, it waits for itself: ' +
        'pass { within: lease }, or make the lock with { reentrant: true } and use run inside run.',
    );
  }
  return engine.error('LOCK_TIMEOUT', parts.join(' '), resource);
}

export async function lookUpHolders(
  engine: Engine,
  resource: string,
  limitMs = LOOK_UP_MS,
): Promise<readonly Holder[] | undefined> {
  try {
    return (await inspectResource(engine, resource, limitMs)).holders;
  } catch {
    return undefined;
  }
}

function sayHolders(holders: readonly Holder[] | undefined): string {
  if (holders === undefined) return 'it is contended';
  if (holders.length === 0) return 'it was contended until the end';
  return `held by ${holders.slice(0, 3).map(sayHolder).join(', ')}${holders.length > 3 ? ', …' : ''}`;
}

function sayHolder({ label, acquisitionId, heldForMs, expiresInMs }: Holder): string {
  const since = heldForMs === undefined ? '' : ` for ${Math.round(heldForMs)} ms`;
  const until = expiresInMs === undefined ? '' : ` (ends in ${Math.round(expiresInMs)} ms unless renewed)`;
  return `${label ?? acquisitionId}${since}${until}`;
}
