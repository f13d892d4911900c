import { DatabaseSync } from 'node:sqlite';
import type { LockMode } from '@locks/core';
import type { LockBackend } from '@locks/core/backend';
import type { HoldRecord } from '@locks/core/rules';
import { fitTogether } from '../checks/fit-together.ts';
import { QueueCheck } from '../checks/queue-check.ts';
import type { World } from '../kernel/world.ts';
import type { Link } from '../network/link.ts';
import { answersOf } from '../process/answers-of.ts';
import type { LoadedLocks } from '../process/lock-code.ts';
import type { SimulatedProcess } from '../process/simulated-process.ts';
import { freshDatabasePath, removeDatabase } from '../sqlite/database-folder.ts';
import { LOCK_FILE } from '../sqlite/file-failures.ts';
import { SimulatedMachine } from '../sqlite/simulated-machine.ts';
import { NOTHING, type SeenWaiter, TableReader, type TableView } from '../sqlite/table-view.ts';
import type { FaultPlan, OperationKind, Plan, StoreFaultPlan } from '../workload/plan.ts';
import type { SimulatedStore } from './simulated-store.ts';
import { leftInWords, usersInWords } from './users-in-words.ts';

const OPERATOR_KINDS: readonly OperationKind[] = ['steal', 'force-release', 'resize'];
/** What the random numbers are for. */
const MACHINE = 1_000;
const PID_SPACE = 4_026_531_836;
/** A process that was not hindered for so long has sent a heartbeat since, in milliseconds. */
const HEARD_WITHIN_MS = 4_000;
/** The label of what an earlier boot of the machine has left. */
const EARLIER = 'earlier boot';
/** The first statements of a process open the file. */
const OPENING_STATEMENTS = 30;

/** A file of SQLite on the machine of all processes, and what is checked of its tables after each commit. */
export class NetworkedSqlite implements SimulatedStore {
  readonly name = 'sqlite';
  readonly #world: World;
  readonly #plan: Plan;
  readonly #machine: SimulatedMachine;
  readonly #path = freshDatabasePath();
  readonly #checks = new Map<string, QueueCheck>();
  /** What the operations do, by their labels. */
  readonly #kinds: ReadonlyMap<string, OperationKind>;
  readonly #hasOperator: boolean;
  /** Whether each process sees its own alone, and has a clock of its own, or the system does not tell. */
  readonly #containers: 'none' | 'each' | 'unknown';
  /** Entries in the queue whose process was silent for too long. */
  readonly #passedOver = new Set<string>();
  #views: ReadonlyMap<string, TableView> = new Map();
  #observer: DatabaseSync | undefined;
  #reader: TableReader | undefined;
  #occupier: DatabaseSync | undefined;
  readonly isAway = false;

  constructor(world: World, plan: Plan) {
    this.#world = world;
    this.#plan = plan;
    const random = world.random.fork(MACHINE);
    this.#machine = new SimulatedMachine(world, random, {
      realPath: this.#path,
      platform: plan.sqlite?.platform ?? 'linux',
      wakeUps: () => {
        const rate = world.now < plan.faultsEndAt ? plan.network.lostPushes : 0;
        return { lost: rate, late: rate, lateMs: 300, twice: rate / 2 };
      },
      committed: (process) => this.#committed(process),
    });
    this.#kinds = new Map(
      plan.processes.flatMap(({ clients }) =>
        clients.flatMap(({ name, operations }) =>
          operations.map(({ kind }, index): [string, OperationKind] => [`${name}.${index}`, kind]),
        ),
      ),
    );
    this.#hasOperator = [...this.#kinds.values()].some((kind) => OPERATOR_KINDS.includes(kind));
    this.#containers = random.pick(['none', 'none', 'none', 'each', 'unknown']);
  }

  /** Somebody else has the write lock, as a backup does, or an operator's shell. */
  goAway(ms: number): void {
    if (this.#occupier !== undefined) return;
    const occupier = new DatabaseSync(this.#path, { timeout: 0 });
    try {
      occupier.exec('BEGIN IMMEDIATE');
    } catch {
      return occupier.close();
    }
    this.#occupier = occupier;
    this.#world.schedule(this.#world.now + ms, () => {
      this.#occupier = undefined;
      occupier.close();
    });
  }

  suffer(fault: StoreFaultPlan): boolean {
    const until = this.#world.now + ('ms' in fault ? fault.ms : 0);
    if (fault.kind === 'read-only') this.#machine.readOnlyUntil = until;
    else if (fault.kind === 'full') this.#machine.fullUntil = until;
    else throw new Error(`a simulated SQLite has no ${fault.kind}`);
    return false;
  }

  interrupt(process: SimulatedProcess, fault: Extract<FaultPlan, { kind: 'in a transaction' }>): void {
    this.#machine.filesOf(process.pid)?.interruptNext(fault);
  }

  backendIn(process: SimulatedProcess, _: Link, loaded: LoadedLocks): LockBackend {
    const { maxPollMs, network, sqlite } = this.#plan;
    const { random } = this.#machine;
    const hasWatches = network.lostPushes === 0 || random.chance(0.7);
    const index = Number(process.name.slice(1));
    const isApart = this.#containers === 'each' && this.#machine.platform === 'linux';
    const files = this.#machine.starts(process, {
      pidSpace: this.#containers === 'unknown' ? undefined : PID_SPACE + (isApart ? index : 0),
      clockOffsetMicros: isApart ? (index - 1) * 7_000_123 : 0,
      hasWatches,
    });
    files.slowPollsMs = sqlite?.slowPollsMs[index] ?? 0;
    const options = { path: LOCK_FILE, synchronous: 'normal', maxPollMs } as const;
    const open = () => loaded.openLockFile(loaded.loadSqlite(), options, loaded.machineClock());
    if (index === 0 && sqlite?.hasEarlierBoot) this.#bootedBefore(loaded);
    // Another process opens the file at the same time.
    if (random.chance(0.3))
      files.beforeStatement(random.between(1, OPENING_STATEMENTS), () => open().close());
    return answersOf(loaded.sqliteBackend(LOCK_FILE, { maxPollMs }) as LockBackend, process);
  }

  isEmpty(): boolean {
    return this.leftovers().length === 0;
  }

  modeHeld(resource: string, acquisitionId: string): LockMode['kind'] | undefined {
    const { holds } = this.#views.get(resource) ?? NOTHING;
    return this.#living(holds).find(({ id }) => id === acquisitionId)?.mode.kind;
  }

  /** Rows of holds that have ended, and of clients that are silent, count no more. */
  leftovers(isMeant: (label: string) => boolean = () => true): string[] {
    const rows = [...this.#views].flatMap(([name, view]) => leftInWords(name, this.#counting(view), isMeant));
    return [...rows, ...this.#wakeFilesLeft(isMeant)];
  }

  close(): void {
    this.#machine.endsAll();
    this.#occupier?.close();
    this.#observer?.close();
    removeDatabase(this.#path);
  }

  /** A process that has closed its locks has removed its file; that of a killed one goes with its row. */
  #wakeFilesLeft(isMeant: (label: string) => boolean): string[] {
    if (this.#machine.wakeFiles.size === 0) return [];
    const clients = new Set(this.#reader?.clients().map(({ id }) => id));
    return [...this.#machine.wakeFiles].flatMap(([path, maker]) => {
      if (!isMeant(`${maker.name}.wake`)) return [];
      const hasRow = clients.has(Number(path.slice(path.lastIndexOf('-') + 1)));
      return maker.isCrashed && hasRow ? [] : [`the wake file of ${maker.name}`];
    });
  }

  #living(holds: readonly HoldRecord[]): HoldRecord[] {
    const now = this.#machine.nowMicros();
    return holds.filter(({ until = 0 }) => until > now);
  }

  #alive(waiters: readonly SeenWaiter[]): SeenWaiter[] {
    const now = this.#machine.nowMicros();
    return waiters.filter(
      ({ aliveUntil, pid }) => aliveUntil > now && this.#machine.processOf(pid)?.isCrashed !== true,
    );
  }

  /** The file has rows of an earlier boot, whose clock was further on. */
  #bootedBefore(loaded: LoadedLocks): void {
    const { boot, bootIsExact, nowMicros } = loaded.machineClock();
    const later = nowMicros() + 3_600_000_000;
    const clock = { boot: bootIsExact ? 'an earlier boot' : boot, bootIsExact, nowMicros: () => later };
    const options = { path: LOCK_FILE, synchronous: 'normal', maxPollMs: 25 } as const;
    loaded.openLockFile(loaded.loadSqlite(), options, clock).close();
    const file = new DatabaseSync(this.#path);
    for (const { name } of this.#plan.resources) {
      const resource = Buffer.from(name);
      file
        .prepare("INSERT INTO holds VALUES (?, 'before', 0, 1, 1, 1, ?, ?, 1000, ?)")
        .run(resource, later, later + 1_000, EARLIER);
      file
        .prepare('INSERT INTO waiters VALUES (?, 1, 7, ?, 0, 1, 1, ?, ?)')
        .run(resource, `after ${name}`, later, EARLIER);
    }
    file.prepare("INSERT INTO clients VALUES (7, ?, 7, 'before')").run(later + 2_000_000);
    file.close();
  }

  #committed(writer: SimulatedProcess): void {
    this.#reader ??= this.#openReader();
    const before = this.#views;
    this.#views = this.#reader.read();
    for (const { name } of this.#plan.resources) {
      const was = before.get(name) ?? NOTHING;
      const view = this.#views.get(name) ?? NOTHING;
      this.#checkPassedOver(name, view);
      if (isSame(was, view)) continue;
      this.#world.note(this.name, () => `${name} ${usersInWords(this.#counting(view))}`);
      this.#check(name, was, view, writer);
    }
  }

  #openReader(): TableReader {
    this.#observer = new DatabaseSync(this.#path);
    return new TableReader(this.#observer);
  }

  #check(name: string, was: TableView, view: TableView, writer: SimulatedProcess): void {
    // A steal, or whoever goes on with a lease, ends the holds that there are.
    const hasStolen = view.holds.some(
      ({ id, until = 0 }) => until < 0 && was.holds.some((hold) => hold.id === id && (hold.until ?? 0) > 0),
    );
    const isStolen = ({ label = '' }: HoldRecord): boolean =>
      hasStolen || this.#kinds.get(label) === 'steal' || label.endsWith('>');
    // Rows of an earlier boot are there until the first process has opened the file.
    const holds = this.#living(view.holds)
      .filter(({ label }) => label !== EARLIER)
      .map((hold) => ({ ...hold, stolen: isStolen(hold) }));
    const waiters = this.#alive(view.waiters).filter(({ label }) => label !== EARLIER);
    const check = this.#checks.get(name) ?? this.#newCheck(name);
    this.#checks.set(name, check);
    check.stepTaken(holds, waiters, [], () => false);
    this.#checkPermits(name, holds);
    this.#checkPlaces(name, was, view, writer);
  }

  #newCheck(name: string): QueueCheck {
    return new QueueCheck(this.#world, name, {
      isCombined: true,
      hasOperator: this.#hasOperator,
      servesItself: true,
    });
  }

  /** One commit may carry several steps: only where nobody changes the limit, permits fit behind it too (docs/spec.md §15.5). */
  #checkPermits(name: string, holds: readonly HoldRecord[]): void {
    if (this.#hasOperator) return;
    for (const [index, { mode, label }] of holds.entries()) {
      const others = holds.toSpliced(index, 1);
      if (
        !fitTogether(
          others.map((other) => other.mode),
          mode,
        )
      )
        return this.#world.violated('§11.1', `${label} holds ${name} in the file beside ${others[0]?.label}`);
    }
  }

  /** A process that lives keeps its places: the others take out those of the dead alone (docs/spec.md §7.1, §7.7). */
  #checkPlaces(name: string, was: TableView, view: TableView, writer: SimulatedProcess): void {
    if (this.#isHindered) return;
    const known = new Set([...view.holds, ...view.waiters].map(({ id }) => id));
    for (const { id, pid, label } of was.waiters) {
      const owner = this.#machine.processOf(pid);
      if (owner === undefined || owner === writer || owner.isCrashed || known.has(id)) continue;
      this.#world.violated('§7.1', `${label} waits for ${name}, and ${writer.name} took it out of the queue`);
    }
    const since = new Map(was.waiters.map((waiter) => [waiter.id, waiter.since]));
    for (const waiter of view.waiters)
      if (!this.#hasOperator && waiter.since !== (since.get(waiter.id) ?? waiter.since))
        this.#world.violated('§7.1', `${waiter.label} waits for ${name}, and has lost its place`);
  }

  /**
   * A process that waits is heard of, unless it was hindered (docs/spec.md §7.7). What was granted meanwhile may be in conflict with whoever was passed over (§15.7): that one
   * queues again.
   */
  #checkPassedOver(name: string, { waiters }: TableView): void {
    const now = this.#machine.nowMicros();
    for (const { id, since, label, aliveUntil, pid } of waiters) {
      const entry = `${id} ${since}`;
      if (aliveUntil <= now) {
        const isNew = !this.#passedOver.has(entry);
        this.#passedOver.add(entry);
        if (isNew && !this.#isHindered && this.#machine.processOf(pid)?.isCrashed === false)
          this.#world.violated('§7.1', `${label} waits for ${name}, and its process counts as dead`);
      } else if (this.#passedOver.has(entry))
        this.#world.violated('§15.7', `${label} was passed over for ${name}, and has its place again`);
    }
  }

  /** Whether something may have kept a process from its heartbeat. */
  get #isHindered(): boolean {
    const { now } = this.#world;
    const { faults, storeFaults } = this.#plan;
    return [...faults, ...storeFaults].some((fault) => {
      const ms = 'ms' in fault ? Math.abs(fault.ms) : 0;
      return fault.at <= now && now < fault.at + Math.min(ms, 10_000) + HEARD_WITHIN_MS;
    });
  }

  #counting({ holds, waiters }: TableView): TableView {
    return { holds: this.#living(holds), waiters: this.#alive(waiters) };
  }
}

/** Whether nothing but heartbeats was written. */
function isSame(was: TableView, is: TableView): boolean {
  return (
    was.waiters.length === is.waiters.length &&
    was.holds.length === is.holds.length &&
    was.waiters.every(
      ({ id, mode }, at) => is.waiters[at]?.id === id && isSameMode(mode, is.waiters[at].mode),
    ) &&
    was.holds.every(({ id, mode, until, token }, at) => {
      const hold = is.holds[at];
      return hold?.id === id && hold.until === until && hold.token === token && isSameMode(mode, hold.mode);
    })
  );
}

function isSameMode(one: LockMode, other: LockMode): boolean {
  if (one.kind !== other.kind) return false;
  return one.kind !== 'permit' || other.kind !== 'permit' || one.limit === other.limit;
}
