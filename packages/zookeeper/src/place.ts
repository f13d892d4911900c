import type { AcquireRequest, LossReason } from '@locks/core';
import { type Children, hasCode, type NodeContent } from './client-port.ts';
import { Line } from './line.ts';
import { asShared, parseSeat, type SeatName, seatPrefix } from './names.ts';
import type { Parents } from './parents.ts';
import { decodeSeat, encodeSeat } from './seat-data.ts';
import { expired, type Session } from './session.ts';

/** How often an entry meets a parent that was tidied away in the same moment, before it is taken for an error. */
const TRIES = 10;

type Outcome<T> = { readonly value: T } | { readonly error: unknown };

/** The place in line of one acquisition: its node, and what is known of it. */
export class Place {
  readonly request: AcquireRequest;
  readonly parent: string;
  /** Aborts, with the reason, when the hold is lost by a message of the store. */
  readonly lost = new AbortController();
  granted = false;
  /** Given up: whatever comes of requests that are under way, nothing may be left. */
  doomed = false;
  /** The node to wait for. */
  blocker: SeatName | undefined;
  readonly #session: Session;
  readonly #parents: Parents;
  #seat: SeatName | undefined;
  #token: bigint | undefined;
  /** A create got no answer: there may be a node. */
  #uncertain = false;
  /** A downgrade got no answer: there may be a node of a reader as well, or in place of this one. */
  #maybeShared = false;
  #entering: Promise<Line> | undefined;
  #leavings = 0;
  #guarded = false;
  #moving = false;

  constructor(request: AcquireRequest, session: Session, parents: Parents) {
    this.request = request;
    this.#session = session;
    this.#parents = parents;
    this.parent = parents.enter(request.resource);
  }

  get seat(): SeatName | undefined {
    return this.#seat;
  }

  get token(): bigint | undefined {
    return this.#token;
  }

  /** Whether its node is watched: its deletion will be told. */
  get guarded(): boolean {
    return this.#guarded;
  }

  /** A release was sent before and got no answer. */
  get leftBefore(): boolean {
    return this.#leavings > 1;
  }

  get path(): string {
    return `${this.parent}/${this.#seat?.name}`;
  }

  /** The line as it is now, with this place in it; `undefined`: it held, and an administrator deleted its node. */
  async lookUp(): Promise<Line | undefined> {
    if (this.#entering === undefined && this.#seat !== undefined) {
      const line = await this.#session.line(this.parent);
      if (line.seats.some(({ name }) => name === this.#seat?.name)) return line;
      if (this.granted) {
        this.lose('force-released');
        return undefined;
      }
      // A wait starts anew.
      this.#forget();
    }
    this.#entering ??= (this.#uncertain ? this.#findOrEnter() : this.#enter()).finally(() => {
      this.#entering = undefined;
    });
    return await this.#entering;
  }

  /** Where it is not known yet: a token is the transaction that made the node. */
  async learnToken(): Promise<bigint | undefined> {
    if (this.#token !== undefined) return this.#token;
    try {
      const content = await this.#session.ask(() => this.#session.port.read(this.path));
      this.#token ??= decodeSeat(content).token;
    } catch (error) {
      if (!hasCode(error, 'NO_NODE')) throw error;
      this.#forget();
    }
    return this.#token;
  }

  /** Watches its own node: what an administrator deletes is told within one message (docs/spec.md §8.3). */
  async guard(): Promise<void> {
    if (this.#guarded || this.doomed || this.lost.signal.aborted) return;
    this.#guarded = true;
    const { path } = this;
    try {
      const content = await this.#session.watches.add(path, () => {
        this.#guarded = false;
        if (path === this.path && !this.#moving) this.guard().catch(() => undefined);
      });
      if (content !== undefined || path !== this.path) return;
      this.#guarded = false;
      await this.#missing(path);
    } catch (error) {
      this.#guarded = false;
      throw error;
    }
  }

  /** Its node is not there: somebody else deleted it, or a downgrade did that whose replies were lost. */
  async #missing(path: string): Promise<void> {
    const shared = this.#maybeShared ? await this.#findShared() : undefined;
    if (path !== this.path || this.#moving || this.doomed) return;
    if (shared === undefined) return this.lose('force-released');
    this.#becomeShared(shared);
    await this.guard();
  }

  async #findShared(): Promise<SeatName | undefined> {
    const { seats } = await this.#session.line(this.parent);
    return seats.find(({ name }) => this.#seat !== undefined && name === asShared(this.#seat));
  }

  #becomeShared(seat: SeatName): void {
    this.#seat = seat;
    this.#maybeShared = false;
    this.#guarded = false;
  }

  /**
   * Turns the node into a reader's with the same sequence number: the new one is there before the old one goes, so
   * that there is no moment in which the resource is free (docs/spec.md §15.4).
   */
  async downgrade(): Promise<boolean> {
    const seat = this.#seat;
    if (seat === undefined || this.lost.signal.aborted) return false;
    if (seat.seat === 's') return true;
    const name = asShared(seat);
    const { label } = this.request;
    const data = encodeSeat({
      ...(label !== undefined && { label }),
      ...(this.#token !== undefined && { token: this.#token }),
    });
    this.#moving = true;
    this.#maybeShared = true;
    try {
      const [made, removed] = await Promise.all([
        outcome(
          this.#session.ask(() => this.#session.port.create(`${this.parent}/${name}`, data, 'ephemeral')),
        ),
        outcome(this.#session.remove(`${this.parent}/${seat.name}`)),
      ]);
      if ('error' in removed) throw removed.error;
      const madeBefore = 'error' in made && hasCode(made.error, 'NODE_EXISTS');
      if ('error' in made && !madeBefore) throw made.error;
      this.#becomeShared({ ...seat, name, seat: 's' });
      // It was deleted before, and not by an earlier sending of this: what is gone is not made again.
      if (!removed.value && !madeBefore) {
        await this.#session.remove(this.path);
        this.lose('force-released');
        return false;
      }
    } finally {
      this.#moving = false;
    }
    await this.guard();
    return !this.lost.signal.aborted;
  }

  /** Deletes the node, on every way out. `false`: it was gone. What fails is repeated in the background. */
  async leave(): Promise<boolean> {
    this.doomed = true;
    this.#leavings += 1;
    const { acquisitionId } = this.request;
    if (this.#session.ended) {
      this.gone();
      return false;
    }
    this.#session.graves.set(acquisitionId, this.parent);
    await this.#entering?.catch(() => undefined);
    this.#session.graves.set(acquisitionId, this.parent);
    const seat = this.#seat;
    const removed =
      seat === undefined || this.#uncertain || this.#maybeShared
        ? await this.#session.bury(acquisitionId, this.parent)
        : await this.#session.remove(this.path);
    this.#session.graves.delete(acquisitionId);
    this.gone();
    return removed;
  }

  lose(reason: LossReason): void {
    if (this.granted && !this.doomed) this.lost.abort(reason);
    this.gone();
  }

  /** Nothing of it is left. */
  gone(): void {
    const { acquisitionId } = this.request;
    if (this.#session.places.get(acquisitionId) !== this) return;
    this.#session.places.delete(acquisitionId);
    this.#parents.leave(this.parent);
  }

  async #enter(): Promise<Line> {
    for (let tries = 1; ; tries += 1) {
      if (this.doomed) throw expired();
      const { request } = this;
      const { port } = this.#session;
      const prefix = `${this.parent}/${seatPrefix(request.mode, request.acquisitionId)}`;
      const data = encodeSeat(request.label === undefined ? {} : { label: request.label });
      const sentAt = this.#session.now();
      // Sent together and answered in order: the list is read after the node was made, in one round trip.
      const parent = this.#parents.isMade(this.parent)
        ? undefined
        : this.#session.ask(() => port.create(this.parent, Buffer.alloc(0), 'persistent'));
      const [madeParent, before, made, listed] = await Promise.all([
        outcome(parent ?? Promise.resolve(undefined)),
        outcome(this.#session.ask(() => port.read(this.parent))),
        outcome(this.#session.ask(() => port.create(prefix, data, 'ephemeral-sequential'))),
        outcome(this.#session.ask(() => port.children(this.parent))),
      ]);
      if ('value' in made) {
        this.#session.proven(sentAt);
        this.#parents.made(this.parent);
        this.#seat = parseSeat(made.value.slice(this.parent.length + 1));
        if ('error' in listed) throw listed.error;
        this.#token = 'value' in before ? tokenBetween(before.value, listed.value) : undefined;
        return new Line(listed.value.names);
      }
      // Lost replies: whether there is a node is found out by its name (docs/spec.md §2.2).
      this.#uncertain = hasCode(made.error, 'CONNECTION_LOSS', 'SESSION_EXPIRED');
      if (!hasCode(made.error, 'NO_NODE') || tries === TRIES) throw made.error;
      this.#parents.unmade(this.parent);
      if ('error' in madeParent && hasCode(madeParent.error, 'NO_NODE'))
        await this.#parents.makeRoot(this.#session);
    }
  }

  /** After a lost reply: one's own node, told by the id in its name, is adopted if this very session made it. */
  async #findOrEnter(): Promise<Line> {
    const { acquisitionId } = this.request;
    // Not before an earlier create that is still under way.
    const [, line] = await Promise.all([this.#session.barrier(), this.#session.line(this.parent)]);
    const [found, ...more] = line.of(acquisitionId);
    for (const seat of found === undefined || (await this.#isOurs(found)) ? more : [found, ...more])
      await this.#session.remove(`${this.parent}/${seat.name}`);
    this.#uncertain = false;
    if (this.#seat === undefined) return await this.#enter();
    return await this.#session.line(this.parent);
  }

  async #isOurs(seat: SeatName): Promise<boolean> {
    try {
      const content = await this.#session.ask(() => this.#session.port.read(`${this.parent}/${seat.name}`));
      // One of an earlier session is about to vanish (CURATOR-498).
      if (content.owner !== this.#session.id) return false;
      this.#seat = seat;
      this.#token = decodeSeat(content).token;
      return true;
    } catch (error) {
      if (hasCode(error, 'NO_NODE')) return false;
      throw error;
    }
  }

  #forget(): void {
    this.#seat = undefined;
    this.#token = undefined;
    this.blocker = undefined;
  }
}

/**
 * The token of a node that was made between two looks at its parent: if its children changed once only, the last change
 * is that node, and no further request is needed. Otherwise it must be asked for.
 */
function tokenBetween(before: NodeContent, after: Children): bigint | undefined {
  return after.cversion === ((before.cversion + 1) | 0) ? after.pzxid : undefined;
}

function outcome<T>(work: Promise<T>): Promise<Outcome<T>> {
  return work.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
}
