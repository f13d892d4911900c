import { freshAcquisitionId } from '../acquire/acquisition-id.ts';
import type { AcquireRequest, Grant, LockMode } from '../backend/types.ts';
import type { ManagerCore } from '../manager-core.ts';
import { WAIT_NAMES } from '../names.ts';
import { checkTtl } from '../options.ts';

/** How many edges one request publishes, on a store that takes several locks in one step. */
const AT_ONCE = 32;
/** How long an edge outlives its process, in periods of the watch. */
const TTL_PERIODS = 4;
const LONGEST_TTL_MS = 3_600_000;

/** What a hold tells of a wait inside its `run`: a lock whose name has the id of the hold, and whose label tells of the wait. */
export interface WaitEdge {
  readonly holdId: string;
  readonly label: string;
  /** The request of the lock, once it was sent. */
  request: AcquireRequest | undefined;
  grant: Grant | undefined;
  /** When the store was last asked to keep the lock. */
  keptSince: number;
}

/** The edges that one manager keeps in its store, with one request at a time. */
export class WaitEdges {
  readonly #core: ManagerCore;
  readonly #mode: LockMode;
  readonly #ttlMs: number;
  readonly #edges = new Set<WaitEdge>();
  /** The edges that the store does not have yet, in the order in which they are sent. */
  readonly #pending = new Set<WaitEdge>();
  /** Whether the store gives back the id and the label of a hold; `undefined` until an edge was looked up. */
  #isShown: boolean | undefined;
  #takesSeveral: boolean;
  /** Whether the last request kept edges. */
  #hasKept = false;

  constructor(core: ManagerCore) {
    const { modes, ttl } = core.backend.capabilities;
    this.#core = core;
    // Several waits inside of one hold are told side by side.
    this.#mode = { kind: modes.includes('shared') ? 'shared' : 'exclusive' };
    const ttlMs = Math.max(Math.ceil(core.deadlockAfterMs * TTL_PERIODS), ttl.minMs);
    this.#ttlMs = checkTtl(Math.min(ttlMs, LONGEST_TTL_MS), ttl);
    this.#takesSeveral = core.backend.attemptMany !== undefined;
  }

  get isEmpty(): boolean {
    return this.#edges.size === 0;
  }

  /** Publishes an edge with one of the next requests. Returns the function that takes it back. */
  add(holdId: string, label: string): () => void {
    const edge: WaitEdge = { holdId, label, request: undefined, grant: undefined, keptSince: 0 };
    this.#edges.add(edge);
    this.#pending.add(edge);
    return () => {
      this.#edges.delete(edge);
      this.#pending.delete(edge);
      if (edge.request !== undefined) this.#core.abandonWhenAdmitted(edge.request);
    };
  }

  /** Sends one request: it keeps the edges that the store has, or publishes others. */
  async write(): Promise<void> {
    const now = this.#core.now();
    const mayPublish = this.#pending.size > 0 && this.#isShown !== false;
    const published = [...this.#edges].filter(({ grant }) => grant !== undefined);
    const isDue = published.some(({ keptSince }) => now - keptSince >= this.#core.deadlockAfterMs / 2);
    // In turns, where both have something to send.
    this.#hasKept = isDue && !(mayPublish && this.#hasKept);
    if (this.#hasKept) await this.#keep(published, now);
    else if (mayPublish) await this.#publish(now);
  }

  async #keep(edges: readonly WaitEdge[], now: number): Promise<void> {
    const { backend } = this.#core;
    const items = edges.map(({ grant }) => ({ grant: grant as Grant, ttlMs: this.#ttlMs }));
    const answers = await this.#core.ask('tell who waits', undefined, (call) => backend.renew(items, call));
    for (const [index, edge] of edges.entries()) {
      if (answers[index]?.status === 'held') edge.keptSince = now;
      else if (answers[index]?.status === 'lost') this.#publishAgain(edge);
    }
  }

  async #publish(now: number): Promise<void> {
    const byName = new Map([...this.#pending].map((edge) => [edge.holdId, edge]));
    const count = this.#takesSeveral ? AT_ONCE : 1;
    const edges = [...byName.values()].slice(0, count);
    const requests = edges.map((edge) => this.#requestFor(edge));
    const grants = await this.#take(requests).catch((error: unknown) => {
      for (const edge of edges) this.#publishAgain(edge);
      throw error;
    });
    // The store refuses all where it refuses one: the next ones are sent one by one.
    if (grants === undefined) this.#takesSeveral = false;
    for (const [index, edge] of edges.entries()) {
      const grant = grants?.[index];
      // An edge that was taken back meanwhile has abandoned its id.
      if (grant !== undefined) [edge.grant, edge.keptSince] = [grant, now];
      else if (this.#edges.has(edge)) {
        edge.request = undefined;
        this.#pending.add(edge);
      }
    }
    const [first] = edges;
    if (this.#isShown === undefined && first?.grant !== undefined) await this.#lookUp(first);
  }

  #requestFor(edge: WaitEdge): AcquireRequest {
    const { holdId, label } = edge;
    edge.request = {
      resource: WAIT_NAMES + holdId,
      acquisitionId: freshAcquisitionId(),
      label,
      mode: this.#mode,
      ttlMs: this.#ttlMs,
    };
    this.#pending.delete(edge);
    return edge.request;
  }

  #take(requests: readonly AcquireRequest[]): Promise<readonly Grant[] | undefined> {
    const { backend } = this.#core;
    return this.#core.ask('tell who waits', undefined, async (call) => {
      if (requests.length > 1) return backend.attemptMany?.(requests, call);
      const attempt = await backend.attempt(requests[0] as AcquireRequest, false, call);
      return attempt.status === 'granted' ? [attempt.grant] : undefined;
    });
  }

  /** Gives up the lock of an edge, and publishes the edge again after the others. */
  #publishAgain(edge: WaitEdge): void {
    if (!this.#edges.has(edge)) return;
    if (edge.request !== undefined) this.#core.abandonWhenAdmitted(edge.request);
    [edge.request, edge.grant] = [undefined, undefined];
    this.#pending.add(edge);
  }

  /** Finds out whether the store shows edges: without the id or the label of a hold nobody can follow them. */
  async #lookUp({ request, label }: WaitEdge): Promise<void> {
    const { backend } = this.#core;
    const { resource, acquisitionId } = request as AcquireRequest;
    const { holders } = await this.#core.ask('inspect', resource, (call) =>
      backend.inspect(resource, call, { waiters: false }),
    );
    this.#isShown = holders.some(
      (holder) => holder.acquisitionId === acquisitionId && holder.label === label,
    );
  }
}
