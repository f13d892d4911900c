import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { WaiterRecord } from '@locks/core/rules';
import { QueueCheck } from '../checks/queue-check.ts';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import type { RecordPlan } from '../record/record-plan.ts';
import { RecordServer } from '../record/record-server.ts';
import { type RecordRenewal, type RecordView, viewOfRecord } from '../record/record-view.ts';
import { SimulatedRecordStore } from '../record/simulated-record-store.ts';
import type { OperationKind, Plan, StoreFaultPlan } from '../workload/plan.ts';
import type { SimulatedStore } from './simulated-store.ts';
import { leftInWords, usersInWords } from './users-in-words.ts';

const LOCKS = 'locks/lock/';
const CLIENTS = 'locks/client/';
const OPERATOR_KINDS: readonly OperationKind[] = ['steal', 'force-release', 'resize'];
/** A hold that ended is there until somebody asks: it counts no more after this part of its ttl, by the slowest clock. */
const ENDED_PART = 1.006;
/** A silence of this part of the longest that counts as alive is one, by the fastest clock. */
const SILENT_PART = 0.98;
/** A request without an answer is noticed within this, in milliseconds. */
const UNANSWERED_MS = 3_500;

/** A grant or a renewal, and the true time at which it was written. */
interface SeenRenewal extends RecordRenewal {
  readonly at: number;
}

/** The heartbeats of a client, in true time. */
interface Heartbeats {
  readonly last: number;
  /** When the last silence of about the longest that counts as alive ended. */
  readonly silentUntil: number;
}

interface QueuedWaiter {
  readonly waiter: WaiterRecord;
  readonly since: number;
}

/** A simulated store of records, the network to it, and what is checked of each record that is written. */
export class NetworkedRecord implements SimulatedStore {
  readonly name = 'record';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #record: RecordPlan;
  readonly #server: RecordServer;
  readonly #links: Link[] = [];
  readonly #checks = new Map<string, QueueCheck>();
  readonly #beats = new Map<string, Heartbeats>();
  /** The queues as they were written last, with the true times at which the waiters came. */
  readonly #queues = new Map<string, ReadonlyMap<string, QueuedWaiter>>();
  /** When each hold was granted or renewed last. */
  readonly #renewals = new Map<string, Map<string, SeenRenewal>>();
  readonly #hasOperator: boolean;
  #awayUntil = 0;
  /** The client whose request is carried out now. */
  #writer: string | undefined;

  constructor(world: World, plan: Plan, record: RecordPlan, drift: number) {
    this.#world = world;
    this.#plan = plan;
    this.#record = record;
    this.#server = new RecordServer(world, {
      plan: record,
      drift,
      faultsEndAt: plan.faultsEndAt,
      written: (key) => this.#written(key),
    });
    const operations = plan.processes.flatMap(({ clients }) =>
      clients.flatMap((client) => client.operations),
    );
    this.#hasOperator = operations.some(({ kind }) => OPERATOR_KINDS.includes(kind));
  }

  get isAway(): boolean {
    return this.#world.now < this.#awayUntil;
  }

  goAway(ms: number): void {
    this.#awayUntil = this.#world.now + ms;
  }

  suffer(fault: StoreFaultPlan): boolean {
    switch (fault.kind) {
      case 'restart':
        this.goAway(fault.downMs);
        for (const link of this.#links) link.reset();
        return false;
      case 'collisions':
        this.#server.refuse(fault.ms);
        return false;
      case 'read-only':
        this.#server.refuseWrites(fault.ms);
        return false;
      default:
        throw new Error(`a simulated store of records has no ${fault.kind}`);
    }
  }

  backendIn(process: SimulatedProcess, link: Link, { createRecordBackend }: LoadedLocks): LockBackend {
    let client: string | undefined;
    this.#links.push(link);
    const store = new SimulatedRecordStore({
      process,
      link,
      server: this.#server,
      plan: this.#record,
      maxPollMs: this.#plan.maxPollMs,
      carriedOut: (what, key) => {
        // A client names itself in its heartbeat, which goes before all that it waits for.
        if (what === 'write' && key.startsWith(CLIENTS)) client = key.slice(CLIENTS.length);
        this.#writer = client;
      },
    });
    return createRecordBackend(store);
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    return this.#view(resource).holds.find(({ id }) => id === acquisitionId)?.mode.kind;
  }

  /** Waiters of clients that are silent, and holds that have ended, count no more: the next write drops them. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    return this.#plan.resources.flatMap(({ name }) => {
      const { holds, waiters } = this.#view(name);
      const living = {
        holds: holds.filter(({ id }) => this.#mayLast(name, id)),
        waiters: waiters.filter(({ client }) => this.#isAlive(client)),
      };
      return leftInWords(name, living, isMeant);
    });
  }

  #view(resource: string): RecordView {
    return viewOfRecord(this.#server.present(LOCKS + resource)?.value);
  }

  #isAlive(client: string): boolean {
    const { last = Number.NEGATIVE_INFINITY } = this.#beats.get(client) ?? {};
    return this.#world.now < last + this.#record.waiterTtlMs;
  }

  /** Whether nobody who reads its heartbeat now and then can take a client for dead. */
  #isSurelyAlive(client: string): boolean {
    const { now } = this.#world;
    const { waiterTtlMs, stale } = this.#record;
    const { slow, slowMs } = this.#plan.network;
    const { last, silentUntil } = this.#beats.get(client) ?? { last: -Infinity, silentUntil: Infinity };
    const knownWithinMs = waiterTtlMs / 2 + (slow > 0 ? 2 * slowMs : 0) + UNANSWERED_MS;
    return stale === 0 && now < last + SILENT_PART * waiterTtlMs && now > silentUntil + knownWithinMs;
  }

  #beat(client: string): void {
    const { now } = this.#world;
    if (this.#server.present(CLIENTS + client) === undefined) {
      this.#beats.delete(client);
      return;
    }
    const { last, silentUntil } = this.#beats.get(client) ?? { last: -Infinity, silentUntil: -Infinity };
    const hasBeenSilent = now - last >= SILENT_PART * this.#record.waiterTtlMs;
    this.#beats.set(client, { last: now, silentUntil: hasBeenSilent ? now : silentUntil });
  }

  /** A client that lives keeps its places: the others take out those of the dead alone (docs/spec.md §7.1, §7.7). */
  #checkPlaces(resource: string, { holds, waiters }: RecordView): void {
    const { now } = this.#world;
    const before = this.#queues.get(resource) ?? new Map<string, QueuedWaiter>();
    const known = new Set([...holds, ...waiters].map(({ id }) => id));
    const [head] = before.values();
    for (const queued of before.values()) {
      const { waiter, since } = queued;
      if (known.has(waiter.id) || waiter.client === this.#writer) continue;
      // Who does not enter for so long although it could is passed over.
      if (queued === head && now - since > SILENT_PART * this.#record.waiterTtlMs) continue;
      if (this.#isSurelyAlive(waiter.client))
        this.#world.violated(
          '§7.1',
          `${waiter.label} waits for ${resource}, and others took it out of the queue`,
        );
    }
    const queue = waiters.map((waiter) => {
      const since = before.get(waiter.id)?.since ?? now;
      return [waiter.id, { waiter, since }] as const;
    });
    this.#queues.set(resource, new Map(queue));
  }

  /** Whether the hold was granted or renewed so lately that nobody may have ended it. */
  #mayLast(resource: string, id: string): boolean {
    const renewal = this.#renewals.get(resource)?.get(id);
    if (renewal === undefined) return false;
    return this.#world.now < renewal.at + (renewal.span / 1_000) * ENDED_PART;
  }

  #written(key: string): void {
    if (key.startsWith(CLIENTS)) {
      this.#beat(key.slice(CLIENTS.length));
      return;
    }
    const resource = key.slice(LOCKS.length);
    const view = this.#view(resource);
    this.#world.note(this.name, () => `${resource} ${usersInWords(view)}`);
    this.#noteRenewals(resource, view);
    this.#checkPlaces(resource, view);
    const check = this.#checks.get(resource) ?? this.#newCheck(resource);
    this.#checks.set(resource, check);
    // Whoever writes takes out what has ended: all that is left counts. One write may carry several steps.
    check.stepTaken(view.holds, view.waiters, [], (client) => client === this.#writer);
  }

  #noteRenewals(resource: string, { renewals }: RecordView): void {
    const before = this.#renewals.get(resource);
    const at = this.#world.now;
    const seen = [...renewals].map(([id, renewal]): readonly [string, SeenRenewal] => {
      const known = before?.get(id);
      return [id, known?.mark === renewal.mark ? known : { ...renewal, at }];
    });
    this.#renewals.set(resource, new Map(seen));
  }

  #newCheck(resource: string): QueueCheck {
    return new QueueCheck(this.#world, resource, { isCombined: true, hasOperator: this.#hasOperator });
  }
}
