import type { EntryView } from '../etcd/entry-view.ts';
import type { World } from '../kernel/world.ts';
import { fitTogether } from './fit-together.ts';

/**
 * Holds one resource of etcd to docs/spec.md §7.1, §11.1, §15.2, §15.7 and §15.8 after every transaction. Whoever ends a hold grants
 * nothing to waiters of other processes there: that a free resource is entered is checked by time.
 */
export class EntryCheck {
  readonly #world: World;
  readonly #resource: string;
  #before = new Map<string, EntryView>();
  #highestToken = 0;
  /** Waiters that a request has taken out of the queue. */
  readonly #gaveUp = new Set<string>();

  constructor(world: World, resource: string) {
    this.#world = world;
    this.#resource = resource;
  }

  /**
   * @param isWanted - a request has written, and no lease has ended
   * @param stolenBy - the lease of whoever holds ahead of the queue
   */
  written(
    entries: readonly EntryView[],
    { isWanted, stolenBy }: { readonly isWanted: boolean; readonly stolenBy: string | undefined },
  ): void {
    const holds = entries.filter(({ isHeld }) => isHeld);
    const waiters = entries.filter(({ isHeld }) => !isHeld);
    const fresh = holds.filter(({ id }) => this.#before.get(id)?.isHeld !== true);
    for (const hold of fresh) this.#granted(hold, holds, waiters, hold.lease === stolenBy);
    this.#highestToken = Math.max(this.#highestToken, ...fresh.map(({ token }) => token));
    this.#checkFamilies(entries);
    this.#checkGone(entries);
    const before = this.#before;
    this.#before = new Map(entries.map((entry) => [entry.id, entry]));
    if (!isWanted) return;
    for (const { id, isHeld } of before.values()) if (!isHeld && !this.#before.has(id)) this.#gaveUp.add(id);
  }

  #granted(
    { id, label, mode, token }: EntryView,
    holds: readonly EntryView[],
    waiters: readonly EntryView[],
    isStolen: boolean,
  ): void {
    if (token <= this.#highestToken)
      this.#violated('§15.8', `${label} got the token ${token} of # after ${this.#highestToken}`);
    const others = holds.filter((other) => other.id !== id);
    if (
      !fitTogether(
        others.map((other) => other.mode),
        mode,
      )
    )
      this.#violated(
        '§11.1',
        `${label} got # at the store, and ${others[0]?.label ?? 'nobody else'} holds it`,
      );
    if (isStolen) return;
    const { position = Infinity } = this.#before.get(id) ?? {};
    // Neighbours whose turn has come are granted one by one, in any order: whoever still fits was not passed.
    const modes = holds.map((hold) => hold.mode);
    const passed = waiters.find((waiter) => waiter.position < position && !fitTogether(modes, waiter.mode));
    if (passed !== undefined)
      this.#violated('§7.1', `${label} got # before ${passed.label}, who came earlier`);
  }

  /**
   * Whoever was taken out of the queue had given up, and does not come back into it by a late request (docs/spec.md §2.1, §2.2). A late
   * hold is there until its lease is revoked, which is another request.
   */
  #checkGone(entries: readonly EntryView[]): void {
    for (const { id, label, isHeld } of entries)
      if (!isHeld && this.#gaveUp.has(id))
        this.#violated('§2.2', `${label} was taken out of the queue of #, and is back`);
  }

  /** Permits with one limit, or readers and writers, live on a resource. */
  #checkFamilies(entries: readonly EntryView[]): void {
    const [first] = entries;
    const other = entries.find(({ mode }) => first !== undefined && familyOf(mode) !== familyOf(first.mode));
    if (other !== undefined) this.#violated('§15.7', `${other.label} was let in to # beside ${first?.label}`);
  }

  #violated(clause: string, what: string): void {
    this.#world.violated(clause, what.replace('#', this.#resource));
  }
}

function familyOf(mode: EntryView['mode']): string {
  return mode.kind === 'permit' ? `permits of ${mode.limit}` : 'readers and writers';
}
