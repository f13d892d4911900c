import type { LockManager, LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { LateWrites } from './checks/fenced-resource.ts';
import { CohortChecks } from './checks/cohort-checks.ts';
import { HolderChecks, type Participant } from './checks/holder-checks.ts';
import { type TimelineEntry, type Violation, World } from './kernel/world.ts';
import { Link, type NetworkOptions } from './network/link.ts';
import type { ThreadPort } from '../../packages/core/src/renewal-thread/serve-renewals.ts';
import type { LoadedLocks, LockCode } from './process/lock-code.ts';
import { SimulatedProcess } from './process/simulated-process.ts';
import { SimulatedThread } from './process/simulated-thread.ts';
import { SimulationTrace } from './simulation-trace.ts';
import { makeStores } from './store/make-stores.ts';
import type { SimulatedStore } from './store/simulated-store.ts';
import {
  type ApplicationAct,
  handsOver,
  type FaultPlan,
  hasEndsByTime,
  hasForcedEnds,
  isClean,
  isPrompt,
  isSound,
  isShared,
  isUndoable,
  onlyStands,
  type Plan,
  type ProcessPlan,
  type StoreFaultPlan,
  triesAgain,
} from './workload/plan.ts';
import type { Adoption, OperationContext } from './workload/operation-context.ts';
import { RunningOperation } from './workload/run-operation.ts';
import { TimeLimits } from './workload/time-limits.ts';

/** What came of one run. */
export interface RunResult {
  readonly steps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly violations: readonly Violation[];
  /** What the documents of the store allow, since it lost data by itself. */
  readonly expected: readonly Violation[];
  /** What former holders wrote, and how much of it the fence stopped. */
  readonly lateWrites: LateWrites;
  /** Empty unless it was asked for. */
  readonly timeline: readonly TimelineEntry[];
  /** What the processes told of the protocol, as `@locks/history` reads it; empty unless it was asked for. */
  readonly trace: string;
}

/** How late a timer fires at most, in milliseconds: less than the margin of a lease, 2 ms. */
const TIMER_LATENESS_MS = 0.4;
/** The module that makes the backend of a renewal thread; nothing reads it. */
const BACKEND_MODULE = 'file:///simulated/backend.mjs';
const STARTS_WITHIN_MS = 20;
/** What the random numbers of threads are for. */
const THREADS = 2_000;
/** After this a store serves no waiter of a client that is closed, in milliseconds. */
const SERVED_WITHIN_MS = 4_000;
/** A closing manager gives its releases and abandons this long, in milliseconds. */
const CLOSES_WITHIN_MS = 15_000;
/** The time for a release grows by this for each other release and abandon without an answer (docs/spec.md §2.5). */
const EACH_UNANSWERED_MS = 5;
const SOUND: NetworkOptions = {
  latencyMs: 0.5,
  ordered: true,
  slow: 0,
  slowMs: 0,
  lostRequests: 0,
  lostReplies: 0,
  resent: 0,
  lostPushes: 0,
};

interface RunningProcess {
  readonly process: SimulatedProcess;
  readonly links: readonly Link[];
  readonly locks: LockManager;
  readonly loaded: LoadedLocks;
  adopt(adoption: Adoption): void;
  clientsRunning: number;
  isClosing: boolean;
  isClosed: boolean;
  /** It was closed while a request was under way that may have been overtaken by its abandon, or an abandon that may lose races. */
  leavesGhosts: boolean;
}

/** One run of a plan: the same plan gives the same events, each time. */
export class Simulation {
  readonly #world: World;
  readonly #code: LockCode;
  readonly #plan: Plan;
  readonly #checks: HolderChecks;
  readonly #cohortChecks: CohortChecks | undefined;
  readonly #stores: readonly SimulatedStore[];
  readonly #processes: readonly RunningProcess[];
  /** No lease ends by its time: nothing stays in a store when all processes have ended. */
  readonly #leavesNothing: boolean;
  readonly #isPrompt: boolean;
  readonly #limits: TimeLimits;
  /** The acquisitions whose leases others go on with. */
  readonly #adopted = new Set<string>();
  readonly #trace: SimulationTrace | undefined;
  readonly #threadLinks = new Map<SimulatedProcess, Link>();
  #checkedAt = 0;
  #endedAt: number | undefined;

  constructor(code: LockCode, plan: Plan, keepsTimeline = false, keepsTrace = false) {
    const world = new World(plan.seed, keepsTimeline);
    this.#world = world;
    this.#code = code;
    this.#plan = plan;
    this.#trace = keepsTrace ? new SimulationTrace(world) : undefined;
    world.goesOn = keepsTrace;
    this.#checks = new HolderChecks(world);
    this.#cohortChecks = plan.cohort && new CohortChecks(world, plan.cohort);
    this.#leavesNothing = isUndoable(plan) && !hasEndsByTime(plan);
    this.#isPrompt = isPrompt(plan);
    this.#limits = new TimeLimits(plan);
    this.#stores = makeStores(world, code, plan);
    this.#processes = plan.processes.map((process, index) => this.#start(code, process, index));
  }

  async run(): Promise<RunResult> {
    const world = this.#world;
    const unhandled = (error: unknown): void => {
      world.violated(
        '§13.1',
        `an unhandled rejection: ${error instanceof Error ? error.stack : String(error)}`,
      );
    };
    process.on('unhandledRejection', unhandled);
    for (const fault of this.#plan.faults) world.schedule(fault.at, () => this.#fault(fault));
    for (const fault of this.#plan.storeFaults) world.schedule(fault.at, () => this.#storeFault(fault));
    world.schedule(this.#plan.faultsEndAt, () => this.#heal());
    await world.run(
      () => this.#isOver(),
      () => this.#check(),
    );
    process.off('unhandledRejection', unhandled);
    this.#code.runIsOver();
    if (world.violations.length === 0) this.#checkEnd();
    for (const store of this.#stores) store.close?.();
    const { steps, faults, violations, expected, timeline = [] } = world;
    const { lateWrites } = this.#checks;
    const trace = this.#trace?.text ?? '';
    return { steps, faults, violations, expected, lateWrites, timeline, trace };
  }

  #start(code: LockCode, plan: ProcessPlan, index: number): RunningProcess {
    const world = this.#world;
    const process = new SimulatedProcess(world, world.random.fork(index), {
      ...plan,
      timerLatenessMs: TIMER_LATENESS_MS,
    });
    this.#trace?.follow(process);
    const loaded = code.loadInto(process);
    const links = this.#stores.map(
      (store, at) =>
        new Link(world, process, store, world.random.fork(100 + index * 10 + at), this.#plan.network),
    );
    const backends = this.#stores.map((store, at) => store.backendIn(process, links[at] as Link, loaded));
    process.startThread = (workerData) => this.#startThread(process, plan, index, workerData);
    const locks = this.#locksOver(loaded, backends);
    const running: RunningProcess = {
      process,
      loaded,
      adopt: (adoption) => {
        if (running.isClosing || process.isCrashed) return;
        running.clientsRunning += 1;
        world.schedule(world.now + adoption.plan.afterMs, () =>
          process.deliver(world.now, () => void this.#adopt(running, adoption)),
        );
      },
      links,
      locks,
      clientsRunning: 0,
      isClosing: false,
      isClosed: plan.clients.length === 0,
      leavesGhosts: false,
    };
    process.onPause = () => this.#checks.standsStill(process);
    process.onCrash = () => this.#checks.crashed(process);
    for (const link of links) link.onLateCopy = (what) => this.#lateCopy(what);
    const operations = plan.clients.flatMap((client) => client.operations);
    const context: OperationContext = {
      process,
      locks,
      resources: this.#plan.resources,
      checks: this.#checks,
      cohortChecks: this.#cohortChecks,
      isClean: isClean(this.#plan),
      isOfSession: this.#plan.backend === 'zookeeper',
      hasForcedEnds: hasForcedEnds(this.#plan),
      isShared: isShared(this.#plan),
      onlyStands: onlyStands(this.#plan),
      answersAtOnce: isSound(this.#plan) && this.#plan.faults.every(({ kind }) => kind === 'pause'),
      mayGrantLate:
        this.#stores.length > 1 && this.#plan.network.resent > 0 && this.#plan.network.slowMs > 500,
      failsForGood: this.#plan.sqlite !== undefined && this.#plan.storeFaults.length > 0,
      readsStale: (this.#plan.record?.stale ?? 0) > 0,
      thread: this.#plan.thread,
      releasesBeforeMs: (triesAgain(this.#plan) ? 200 : 0) + EACH_UNANSWERED_MS * operations.length,
      // A backend of records declares more than the default: the writes of others may be in the way.
      releaseBudgetMs: this.#plan.record === undefined ? 1_000 : 5_000,
      // A step is several requests where others write the same record.
      latencyMs:
        this.#plan.network.latencyMs * (triesAgain(this.#plan) || this.#plan.backend === 'postgres' ? 5 : 1),
      longestDelayMs: this.#limits.delay,
      transfer: loaded.transfer,
      adoptIn: (to, adoption) => this.#processes[to]?.adopt(adoption),
      released: (label, name, id) => this.#released(label, name, id),
      isClosing: () => running.isClosing,
      isClosed: () => running.isClosed,
      gaveUp: (label) => this.#gaveUp(running, label),
    };
    for (const client of plan.clients) {
      running.clientsRunning += 1;
      process.deliver(0, () => void this.#runClient(running, context, client.name, client.operations));
    }
    return running;
  }

  #locksOver(loaded: LoadedLocks, backends: readonly LockBackend[]): LockManager {
    const { cohort } = this.#plan;
    const [first] = backends;
    const store = backends.length === 1 && first !== undefined ? first : loaded.quorumBackend(backends);
    const { thread } = this.#plan;
    return loaded.createLocks(cohort === undefined ? store : loaded.cohortBackend(store, cohort), {
      ...(thread && {
        renewalThread: loaded.renewalThread(BACKEND_MODULE, { maxBlockedMs: thread.maxBlockedMs }),
      }),
    }) as LockManager;
  }

  /** A thread has the clocks of its process, and connections of its own. */
  #startThread(
    owner: SimulatedProcess,
    plan: ProcessPlan,
    index: number,
    workerData: unknown,
  ): SimulatedThread {
    const world = this.#world;
    const process = new SimulatedProcess(world, world.random.fork(THREADS + index), {
      ...plan,
      name: `${plan.name} thread`,
      timerLatenessMs: TIMER_LATENESS_MS,
      clock: owner.clock,
    });
    const loaded = this.#code.loadInto(process);
    const [store] = this.#stores as [SimulatedStore];
    const link = new Link(world, process, store, world.random.fork(2 * THREADS + index), this.#plan.network);
    const thread = new SimulatedThread(owner, process, workerData);
    owner.threads.push(thread);
    this.#threadLinks.set(owner, link);
    process.deliver(world.now + process.random.next() * STARTS_WITHIN_MS, () => {
      const data = structuredClone(workerData) as Parameters<typeof loaded.serveRenewals>[1];
      const makes = { default: () => store.backendIn(process, link, loaded) };
      void loaded.serveRenewals(thread.parentPort as ThreadPort, data, () => Promise.resolve(makes));
    });
    return thread;
  }

  async #runClient(
    running: RunningProcess,
    context: OperationContext,
    name: string,
    operations: ProcessPlan['clients'][number]['operations'],
  ): Promise<void> {
    for (const [index, operation] of operations.entries()) {
      await context.process.sleep(operation.afterMs);
      if (this.#world.isAhead) await context.process.caughtUp();
      await new RunningOperation(context, operation, `${name}.${index}`).run();
    }
    await this.#clientEnds(running);
  }

  async #clientEnds(running: RunningProcess): Promise<void> {
    running.clientsRunning -= 1;
    // The program is over: it closes its locks, as programs should.
    if (running.clientsRunning === 0) await this.#close(running, 0);
  }

  /** Goes on with a lease that another process has transferred. */
  async #adopt(running: RunningProcess, { ticket, label, plan, mustSucceed }: Adoption): Promise<void> {
    const { process, locks, loaded } = running;
    const { name } = ticket;
    const by: Participant = {
      process,
      label,
      resources: [name],
      startedAt: this.#world.now,
      steals: false,
      learnsWithinMs: Infinity,
    };
    try {
      const lease = await loaded.adopt(locks, ticket, { label, waitMs: 1_000 });
      if (this.#world.isAhead) await process.caughtUp();
      this.#world.note(process.name, () => `${label} goes on with ${name}, token ${lease.fencingToken}`);
      if (this.#adopted.has(ticket.acquisitionId))
        this.#world.violated('§19.2', `${label} goes on with ${name}, as another has done by then`);
      this.#adopted.add(ticket.acquisitionId);
      process.look(() => this.#checks.delivered(by, name, lease, true));
      await process.sleep(plan.holdMs);
      this.#checks.ended(name, lease);
      await lease.release();
      if (this.#world.isAhead) await process.caughtUp();
      this.#released(label, name, lease.acquisitionId);
    } catch (error) {
      const { code } = error as { readonly code?: string };
      this.#world.note(process.name, () => `${label} fails: ${String(error)}`);
      const isExpected = ['LOCK_NOT_HELD', 'LOCK_BACKEND', 'LOCK_LOST', 'LOCK_CLOSED'].includes(code ?? '');
      if (!isExpected) this.#world.violated('§13.1', `${label} failed with ${String(error)}`);
      else if (code === 'LOCK_NOT_HELD' && mustSucceed && !running.isClosing && !this.#checks.mayBeTaken(by))
        this.#world.violated('§19.2', `${label} could not go on with ${name}: ${String(error)}`);
    }
    await this.#clientEnds(running);
  }

  async #close(running: RunningProcess, drainMs: number): Promise<void> {
    const { process, locks } = running;
    running.isClosing = true;
    const closingAt = process.clock.monotonic();
    const closingAtTrue = this.#world.now;
    this.#world.note(process.name, () => `closes its locks, ${drainMs} ms for what is held`);
    try {
      await locks.close({ drainMs });
    } catch (error) {
      // An hour passes at once: the time for the abandons is over before they are sent.
      if (!this.#plan.faults.some(({ kind }) => kind === 'wall clock' || kind === 'sleep'))
        this.#world.violated('§12.2', `${process.name} could not close its locks: ${String(error)}`);
    }
    if (this.#world.isAhead) await process.caughtUp();
    const tookMs = process.clock.monotonic() - closingAt;
    if (tookMs > drainMs + CLOSES_WITHIN_MS + 3 * process.stoodBeside(closingAtTrue))
      this.#world.violated('§12.2', `${process.name} took ${tookMs} ms to close its locks`);
    running.isClosed = true;
    // By another connection an attempt may come after its abandon, and an abandon may lose races against writes of others: what is
    // held then ends by its ttl (docs/spec.md §2.2).
    const mayBeLate =
      !this.#plan.network.ordered || triesAgain(this.#plan) || this.#plan.backend === 'postgres';
    running.leavesGhosts ||= mayBeLate && running.links.some(({ isBusy }) => isBusy);
    this.#checkClosed(running);
  }

  /** What is closed holds nothing and waits for nothing (docs/spec.md §12.2), where every message arrived. */
  #checkClosed({ process: { name }, leavesGhosts }: RunningProcess): void {
    const { faults } = this.#plan;
    // What a part of several stores keeps of a lease that ended by its time, or by force, ends by its ttl.
    if (this.#stores.length > 1 && (hasEndsByTime(this.#plan) || hasForcedEnds(this.#plan))) return;
    if (!isSound(this.#plan) || faults.some(({ kind }) => kind !== 'close')) return;
    // Of two renewals that are under way together the store may carry out the shorter one first, and keep the lease for longer.
    const mayOutlast = this.#plan.processes.some(({ clients }) =>
      clients.some(({ operations }) => operations.some(({ during }) => during === 'longer, shorter')),
    );
    // The first turn of a cohort may have asked for less than the waiter who asked the store.
    const lasts = mayOutlast || this.#plan.cohort !== undefined || handsOver(this.#plan);
    // What waits for nobody is served in its turn, unless its client counts as dead by then, and lasts its ttl.
    const ghostMs =
      (leavesGhosts ? SERVED_WITHIN_MS : 0) + (leavesGhosts || lasts ? this.#limits.longestTtl : 0);
    // A lease that ends by its time ends in the store some milliseconds later.
    this.#world.schedule(this.#world.now + this.#limits.clean + this.#limits.uncounted + ghostMs, () => {
      for (const store of this.#stores)
        for (const left of store.leftovers((label) => label.startsWith(`${name}.`)))
          this.#world.violated('§12.2', `${left} is left, and ${name} has closed its locks`);
    });
  }

  /**
   * Whoever has released holds nothing in the store (docs/spec.md §3.2), unless a request comes after it that was sent before by a
   * connection which broke.
   */
  #released(label: string, name: string, id: string): void {
    const { cohort, network } = this.#plan;
    const hasReconnected = this.#processes.some(({ links }) =>
      links.some(({ reconnects }) => reconnects > 0),
    );
    // The store knows a lease that is passed on by its first holder.
    if (cohort !== undefined) return;
    const mayComeAgain =
      hasReconnected || !network.ordered || this.#world.isDataLost || this.#stores.length > 1;
    // What a release has read may say that nothing is held.
    if ((this.#plan.record?.stale ?? 0) > 0) return;
    if (mayComeAgain || !this.#stores.some((store) => store.modeHeld(name, id) !== undefined)) return;
    this.#world.violated('§3.2', `${label} has released ${name}, and the store holds it for ${label}`);
  }

  /** Whoever gave up leaves nothing behind (docs/spec.md §2.2, §7.2): without faults, soon. */
  #gaveUp(running: RunningProcess, label: string): void {
    const world = this.#world;
    // The store may know another waiter of the process by the label of one who gave up.
    if (!isUndoable(this.#plan) || this.#plan.cohort !== undefined) return;
    const { latencyMs } = this.#plan.network;
    // Of one connection to MySQL a lease of some round trips leaves little to others.
    if (triesAgain(this.#plan) && this.#limits.shortestTtl < 40 * latencyMs) return;
    // Processes that write the same record make each other try again.
    const latencies = triesAgain(this.#plan) ? 100 : 20;
    const withinMs = 10 + latencies * latencyMs + this.#limits.late + this.#limits.uncounted;
    world.schedule(world.now + withinMs, () => {
      if (running.leavesGhosts) return;
      for (const store of this.#stores)
        for (const left of store.leftovers((other) => other === label))
          world.violated('§2.2', `${left} is left, and ${label} gave up`);
    });
  }

  #fault(fault: FaultPlan): void {
    const running = this.#processes[fault.process];
    if (running === undefined) return;
    const { process, links } = running;
    if (process.isCrashed) return;
    // The rest of an event in whose middle the process stands still has run already: nothing happens to it before that is over.
    const { stallEndsAt } = process;
    if (this.#world.now < stallEndsAt && fault.kind !== 'store away' && fault.kind !== 'partition')
      return void this.#world.schedule(stallEndsAt, () => this.#fault(fault));
    if (fault.kind !== 'stall') this.#world.countFault(fault.kind);
    this.#world.note(process.name, () => `FAULT ${describeFault(fault)}`);
    switch (fault.kind) {
      case 'pause':
        for (const one of withThreads(process)) one.pause(fault.ms);
        return;
      case 'block':
        return this.#block(process, fault.ms);
      case 'thread stands still':
        for (const { thread } of process.threads) thread.pause(fault.ms);
        return;
      case 'thread ends':
        for (const thread of process.threads) if (thread.isReady) thread.end();
        return;
      case 'stall':
        return process.stallIn(fault);
      case 'application':
        return this.#useClient(running, fault.act, fault.ms);
      case 'sleep':
        for (const one of this.#onMachineOf(process)) {
          for (const { thread } of one.threads) thread.pause(fault.ms);
          one.pause(fault.ms);
          // On Windows that clock goes on.
          if (one.machine?.platform !== 'win32') one.clock.sleep(fault.ms);
        }
        return;
      case 'crash':
        process.crash();
        if (fault.isNoticed) for (const link of links) link.reset();
        if (fault.isNoticed) this.#threadLinks.get(process)?.reset();
        return;
      case 'wall clock':
        for (const { clock } of this.#onMachineOf(process)) clock.jump(fault.ms);
        return;
      case 'in a transaction':
        return this.#stores[0]?.interrupt?.(process, fault);
      case 'close':
        return process.deliver(this.#world.now, () => void this.#close(running, fault.drainMs));
      case 'reset':
        return links[fault.store]?.reset();
      case 'store away':
        return this.#stores[fault.store]?.goAway(fault.ms);
      case 'partition':
        // The network of the machine.
        this.#threadLinks.get(process)?.partition(fault.direction, fault.ms);
        return links[fault.store]?.partition(fault.direction, fault.ms);
      default:
        fault satisfies never;
    }
  }

  /** The event loop stands still, and its thread goes on. What it keeps ends with its time all the same (docs/spec.md §20.2). */
  #block(process: SimulatedProcess, ms: number): void {
    process.pause(ms);
    const { maxBlockedMs = 0 } = this.#plan.thread ?? {};
    const { longestTtl, clean, late, uncounted } = this.#limits;
    const freeAfterMs = maxBlockedMs * 1.01 + longestTtl + clean + late + uncounted;
    if (freeAfterMs >= ms || !isSound(this.#plan)) return;
    const holds = (): string[] => this.#holdsOf(process);
    // What is handed to a waiter of the process meanwhile begins later.
    const before = new Set(holds());
    this.#world.schedule(this.#world.now + freeAfterMs, () => {
      if (!process.standsStill) return;
      for (const hold of holds())
        if (before.has(hold)) this.#world.violated('§20.2', `${hold} outlasts the longest block`);
    });
  }

  #holdsOf({ name }: SimulatedProcess): string[] {
    return this.#stores
      .flatMap((store) => store.leftovers((label) => label.startsWith(`${name}.`)))
      .filter((left) => left.startsWith('the hold'));
  }

  /** The application does something else by the client of the locks. */
  #useClient({ process }: RunningProcess, act: ApplicationAct, ms: number): void {
    // What the locks of this process see of another database is none of the locks of others, and of its own from before.
    if (act === 'select') this.#world.dataWasLost(Infinity);
    process.deliver(this.#world.now, () => {
      for (const store of this.#stores) store.useClient?.(process, act, ms);
    });
  }

  /** All processes of the machine; without files each has a machine of its own. */
  #onMachineOf(process: SimulatedProcess): readonly SimulatedProcess[] {
    if (process.machine === undefined) return [process];
    return this.#processes.map((running) => running.process);
  }

  #storeFault(fault: StoreFaultPlan): void {
    const { at: _, kind, ...rest } = fault;
    this.#world.countFault(kind);
    for (const store of this.#stores) {
      this.#world.note(store.name, () => `FAULT ${kind} ${JSON.stringify(rest)}`);
      // Until the last lease of before ends, and a reply that was slow on its way.
      if (store.suffer?.(fault))
        this.#world.dataWasLost(
          this.#world.now + this.#limits.longestTtl + 2 * this.#plan.network.slowMs + 100,
        );
    }
  }

  /** A renewal that comes once more, behind one for longer, shortens the lease there (docs/spec.md §1.7). */
  #lateCopy(what: string): void {
    const isExtended = this.#plan.processes.some(({ clients }) =>
      clients.some(({ operations }) =>
        operations.some(({ during }) => during === 'extend' || during.includes('longer')),
      ),
    );
    if (!isExtended || !what.startsWith('renew')) return;
    this.#world.dataWasLost(this.#world.now + this.#limits.longestTtl);
  }

  #heal(): void {
    for (const links of [...this.#processes.map((running) => running.links), [...this.#threadLinks.values()]])
      for (const link of links) link.becomes({ ...SOUND, latencyMs: this.#plan.network.latencyMs });
    for (const store of this.#stores) store.heal?.();
  }

  /** All processes have ended, and what they left in the stores has had its time to end. */
  #isOver(): boolean {
    if (!this.#processes.every(({ process, isClosed }) => process.isCrashed || isClosed)) return false;
    this.#endedAt ??= this.#world.now;
    if (this.#world.now >= this.#endedAt + this.#limits.leftover) return true;
    if (this.#stores.every((store) => store.isEmpty())) return true;
    if (
      this.#leavesNothing &&
      !this.#leavesGhosts &&
      this.#world.now > this.#endedAt + this.#limits.clean + this.#limits.late
    ) {
      this.#reportLeftovers('is left, and every request came to its store');
      return true;
    }
    // The events may be over before the leases are.
    if (this.#world.now === this.#endedAt)
      for (const ms of [this.#limits.clean + this.#limits.late + 1, this.#limits.leftover])
        this.#world.schedule(this.#endedAt + ms, () => {});
    return false;
  }

  /** An attempt came after its abandon, of locks that were closed by then. */
  get #leavesGhosts(): boolean {
    return this.#processes.some((running) => running.leavesGhosts);
  }

  #check(): void {
    const { now } = this.#world;
    if (this.#plan.looksAtLeases && this.#plan.cohort === undefined) this.#checks.checkStore(this.#isHeld);
    if (this.#isPrompt && !this.#leavesGhosts) this.#checks.checkIdle(this.#limits.idle);
    if (now - this.#checkedAt < 1_000 || now < this.#plan.faultsEndAt) return;
    this.#checkedAt = now;
    this.#checks.checkProgress(this.#plan.faultsEndAt, this.#limits.progress);
  }

  /** By a majority of the stores. */
  readonly #isHeld = (name: string, id: string, modes: readonly LockMode['kind'][]): boolean => {
    // A downgrade is confirmed by most stores: one that has not heard of it keeps the others out all the same.
    const enough = this.#stores.length > 1 ? [...modes, 'exclusive'] : modes;
    const missing = this.#stores.filter(
      (store) => !enough.includes(store.modeHeld(name, id) as LockMode['kind']),
    ).length;
    return missing <= (this.#stores.length - 1) / 2;
  };

  #checkEnd(): void {
    if (this.#endedAt === undefined) {
      const names = this.#processes.filter(({ isClosed, process }) => !isClosed && !process.isCrashed);
      this.#world.violated(
        '§7.3',
        `nothing happens any more, and ${names.map((one) => one.process.name)} waits`,
      );
    } else this.#reportLeftovers('is left in the store for ever');
  }

  #reportLeftovers(what: string): void {
    for (const store of this.#stores) {
      const left = store.leftovers();
      if (left.length > 0) this.#world.violated('§9.1', `${left.join(', ')} ${what}`);
    }
  }
}

/** The process and its threads: a signal stops all of them. */
function withThreads(process: SimulatedProcess): SimulatedProcess[] {
  return [process, ...process.threads.map(({ thread }) => thread)];
}

function describeFault(fault: FaultPlan): string {
  const { at: _, process: __, kind, ...rest } = fault;
  return `${kind} ${JSON.stringify(rest)}`;
}
