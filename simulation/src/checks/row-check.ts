import type { HoldRecord, WaiterRecord } from '@locks/core/rules';
import type { World } from '../kernel/world.ts';
import { fitTogether } from './fit-together.ts';

/** A row of the table of locks, with what its columns say of its state. Times are microseconds of the server's clock. */
export interface SeenRow {
  readonly holds: readonly HoldRecord[];
  readonly waiters: readonly WaiterRecord[];
  /** Whether the columns say that somebody waits. */
  readonly saysWaiting: boolean;
  /** Until when somebody holds, as the columns say. */
  readonly freeAt: number;
}

/** A write of a row. */
export interface RowWriteSeen {
  readonly before: SeenRow;
  readonly after: SeenRow;
  /** It takes what is free, whatever the state says. */
  readonly isTake: boolean;
  /** The client that writes, where that is known. */
  readonly writer: string | undefined;
  readonly now: number;
}

/**
 * Holds each write of a row to what other processes go by, without a look at how it was decided: one statement takes a lock by its columns
 * alone, and a waiter is told of nothing that another process does with its place.
 */
export class RowCheck {
  readonly #world: World;
  readonly #resource: string;
  /** Whether an operator may end holds and waits of others. */
  readonly #hasOperator: boolean;
  readonly #livesThroughout: (client: string) => boolean;
  readonly #idleMicros: number;
  /** The head that could enter, and since when. */
  #idleHead: { readonly id: string; readonly since: number } | undefined;
  #writtenAt = -Infinity;

  /**
   * @param livesThroughout - whether a client has been heard of in time since it first was
   * @param idleMicros - for how long a head may leave what is free
   */
  constructor(
    world: World,
    resource: string,
    hasOperator: boolean,
    livesThroughout: (client: string) => boolean,
    idleMicros: number,
  ) {
    this.#world = world;
    this.#resource = resource;
    this.#hasOperator = hasOperator;
    this.#livesThroughout = livesThroughout;
    this.#idleMicros = idleMicros;
  }

  written({ before, after, isTake, writer, now }: RowWriteSeen): void {
    const name = this.#resource;
    const [first] = before.waiters;
    if (isTake && first !== undefined)
      this.#violated('§7.1', `${after.holds[0]?.label} took ${name} past ${first.label}, who waits`);
    if (after.waiters.length > 0 && !after.saysWaiting)
      this.#violated('§7.1', `the columns of ${name} say that nobody waits`);
    const last = Math.max(0, ...after.holds.map(({ until = 0 }) => until));
    if (after.freeAt < last)
      this.#violated(
        '§11.1',
        `the columns of ${name} say that it is free ${last - after.freeAt} µs too early`,
      );
    const ended = new Set(
      before.holds.filter(({ until = 0 }) => until <= now).map(({ id, token }) => `${id} ${token}`),
    );
    const revived = after.holds.find(
      ({ id, token, until = 0 }) => until > now && ended.has(`${id} ${token}`),
    );
    if (revived !== undefined)
      this.#violated('§1.5', `the hold of ${name} by ${revived.label} had ended, and was renewed`);
    const idle = idleHeadOf(before, this.#writtenAt, now);
    if (idle?.id !== this.#idleHead?.id) this.#idleHead = idle;
    if (!this.#hasOperator && writer !== undefined) this.#checkKept(before, after, writer, now);
    this.#writtenAt = now;
    if (idleHeadOf(after, now, now)?.id !== this.#idleHead?.id) this.#idleHead = undefined;
  }

  /** Nobody loses a place in the queue to another process while the own one lives, and takes what is free. */
  #checkKept(before: SeenRow, after: SeenRow, writer: string, now: number): void {
    const known = new Set([...after.holds, ...after.waiters].map(({ id }) => id));
    const { id: idleId, since = now } = this.#idleHead ?? {};
    const gone = before.waiters.find(
      ({ id, client }) =>
        client !== writer &&
        !known.has(id) &&
        this.#livesThroughout(client) &&
        (id !== idleId || now - since < this.#idleMicros),
    );
    if (gone !== undefined)
      this.#violated(
        '§7.1',
        `${gone.label} waited for ${this.#resource}, and another process has ended that`,
      );
  }

  #violated(clause: string, message: string): void {
    this.#world.violated(clause, message);
  }
}

/** The head that could enter by `now`, and the first moment since the row was written at which it could. */
function idleHeadOf({ holds, waiters: [head] }: SeenRow, writtenAt: number, now: number) {
  if (head === undefined) return undefined;
  const moments = [writtenAt, ...holds.map(({ until = 0 }) => until)].filter((each) => each <= now);
  const since = moments
    .sort((a, b) => a - b)
    .find((moment) =>
      fitTogether(
        holds.filter(({ until = 0 }) => until > moment).map(({ mode }) => mode),
        head.mode,
      ),
    );
  return since === undefined ? undefined : { id: head.id, since };
}
