import type { LockMode } from '@locks/core';
import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import type { World } from '../kernel/world.ts';
import { fitTogether } from './fit-together.ts';

/**
 * Holds one resource of a store to docs/spec.md §7.1, §7.3, §11.1, §15.2 and §15.8 after every step, without a look at how it
 * decides.
 */
export class QueueCheck {
  readonly #world: World;
  readonly #resource: string;
  /** The number with which each waiter came. */
  #arrivals = new Map<string, number>();
  #holding = new Set<string>();
  /** Since when each waiter waits, as a store says that has combined writes. */
  #since = new Map<string, number | undefined>();
  /**
   * Waiters whose place cannot be told: a combined write ended the hold that they had been granted, before it or in the same write, and
   * queued them again.
   */
  readonly #placeless = new Set<string>();
  #arrived = 0;
  #highestToken = 0;

  /** One write may carry several steps: permits may have been granted between a higher limit and a lower one. */
  readonly #isCombined: boolean;
  /** Whether an operator may end holds. */
  readonly #hasOperator: boolean;
  /**
   * Each process grants to its own waiters: neighbours whose turn has come enter in any order. In one write with a grant it may queue those
   * again that were passed over.
   */
  readonly #servesItself: boolean;

  constructor(
    world: World,
    resource: string,
    { isCombined = false, hasOperator = false, servesItself = false } = {},
  ) {
    this.#world = world;
    this.#resource = resource;
    this.#isCombined = isCombined;
    this.#hasOperator = hasOperator;
    this.#servesItself = servesItself;
  }

  /**
   * @param waited - who had waited before the step
   * @param serves - whether the step may grant to waiters of a client
   */
  stepTaken(
    holds: readonly HoldRecord[],
    waiters: readonly WaiterRecord[],
    waited: readonly WaiterRecord[],
    serves: (client: string) => boolean = () => true,
  ): void {
    if (this.#isCombined) this.#findPlaceless(waiters);
    const fresh = holds.filter(({ id }) => !this.#holding.has(id));
    if (fresh.some(({ stolen }) => stolen)) this.#checkQueueKept(holds, waiters, waited);
    for (const hold of fresh) this.#granted(hold, holds, waiters);
    if (fresh.length > 0)
      this.#highestToken = Math.max(...fresh.map(({ token }) => token), this.#highestToken);
    this.#checkHead(holds, waiters, serves);
    this.#checkFamilies([...holds, ...waiters]);
    const before = this.#arrivals;
    this.#arrivals = new Map();
    for (const { id } of waiters) this.#arrivals.set(id, before.get(id) ?? (this.#arrived += 1));
    if (fresh.length > 0 || holds.length !== this.#holding.size)
      this.#holding = new Set(holds.map(({ id }) => id));
  }

  /** The store has lost its last steps: this is left. Tokens go on above those of the steps that are lost. */
  wentBackTo(holds: readonly HoldRecord[], waiters: readonly WaiterRecord[]): void {
    this.#holding = new Set(holds.map(({ id }) => id));
    this.#arrivals = new Map(waiters.map(({ id }) => [id, (this.#arrived += 1)]));
  }

  #findPlaceless(waiters: readonly WaiterRecord[]): void {
    for (const { id, since = 0 } of waiters) {
      const isBackAnew = since > (this.#since.get(id) ?? Infinity);
      if (this.#holding.has(id) || ((this.#hasOperator || this.#servesItself) && isBackAnew))
        this.#placeless.add(id);
    }
    this.#since = new Map(waiters.map(({ id, since }) => [id, since]));
  }

  /** A steal keeps the queue behind it (docs/spec.md §17.1). */
  #checkQueueKept(
    holds: readonly HoldRecord[],
    waiters: readonly WaiterRecord[],
    waited: readonly WaiterRecord[],
  ): void {
    const known = new Set([...holds, ...waiters].map(({ id }) => id));
    const gone = waited.find(({ id }) => !known.has(id));
    if (gone !== undefined)
      this.#world.violated('§17.1', `${gone.label} waited for ${this.#resource}, and a steal has ended that`);
  }

  #granted(
    { id, mode, label, token, stolen }: HoldRecord,
    holds: readonly HoldRecord[],
    waiters: readonly WaiterRecord[],
  ): void {
    if (token <= this.#highestToken) {
      const highest = this.#highestToken;
      this.#world.violated('§15.8', `${label} got the token ${token} of ${this.#resource} after ${highest}`);
    }
    const others = holds.filter((other) => other.id !== id);
    if (
      !(this.#isCombined && mode.kind === 'permit') &&
      !fitTogether(
        others.map((other) => other.mode),
        mode,
      )
    )
      this.#world.violated(
        '§11.1',
        `${label} got ${this.#resource} at the store, and ${others[0]?.label} holds it`,
      );
    if (stolen || this.#placeless.delete(id)) return;
    const arrival = this.#arrivals.get(id) ?? Infinity;
    const modes = holds.map((hold) => hold.mode);
    const passed = waiters.find(
      (waiter) =>
        !this.#placeless.has(waiter.id) &&
        (this.#arrivals.get(waiter.id) ?? Infinity) < arrival &&
        !(this.#servesItself && fitTogether(modes, waiter.mode)),
    );
    if (passed !== undefined)
      this.#world.violated('§7.1', `${label} got ${this.#resource} before ${passed.label}, who came earlier`);
  }

  /** Permits with one limit, or readers and writers, live on a resource (docs/spec.md §15.7). */
  #checkFamilies(living: readonly (HoldRecord | WaiterRecord)[]): void {
    const [first] = living;
    if (first === undefined) return;
    const family = familyOf(first.mode);
    const other = living.find(({ mode }) => familyOf(mode) !== family);
    if (other !== undefined)
      this.#world.violated('§15.7', `${other.label} was let in to ${this.#resource} beside ${first.label}`);
  }

  /** Nobody waits for what is free and could be granted in the step (docs/spec.md §7.3). */
  #checkHead(
    holds: readonly HoldRecord[],
    [head]: readonly WaiterRecord[],
    serves: (client: string) => boolean,
  ): void {
    if (head === undefined || !serves(head.client)) return;
    const held = holds.map(({ mode }) => mode);
    if (fitTogether(held, head.mode))
      this.#world.violated(
        '§7.3',
        `${head.label} is left waiting for ${this.#resource}, which it could enter`,
      );
  }
}

/** What may live on a resource together. */
function familyOf(mode: LockMode): string {
  return mode.kind === 'permit' ? `permits of ${mode.limit}` : 'readers and writers';
}
