import { Buffer } from 'node:buffer';
import type { ProtocolMessage } from '../../../packages/history/src/trace-encoder.ts';
import type { ScheduledEvent } from '../kernel/event-queue.ts';
import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import { ProcessClock } from './process-clock.ts';
import type { Stall, StallPlace } from './stall.ts';
import type { ProcessMachine } from './process-machine.ts';

/** So many microtasks of one event are looked at. */
const MOST_MICROTASKS = 60;
/** A timer of more than this is only set to keep a process alive. */
const FOR_EVER_MS = 1e9;

export interface ProcessOptions {
  readonly name: string;
  readonly drift: number;
  /** How far its wall clock is off, in milliseconds. */
  readonly wallOffset: number;
  /** How late its timers fire at most, in milliseconds. */
  readonly timerLatenessMs: number;
  /** Those of the process of which this one is a thread. @defaultValue its own */
  readonly clock?: ProcessClock;
}

/** A worker thread, as its process has it. */
export interface WorkerThread {
  /** What runs in it: its timers, messages and connections. */
  readonly thread: SimulatedProcess;
  /** Whether it has started. Where it ends before, no lock is acquired. */
  readonly isReady: boolean;
  /** What `new Worker()` gives. */
  readonly worker: object;
  /** It ends, by whoever ends it, and the process hears of that. */
  end(): void;
}

/** True times between which a process stood still. */
interface PastStall {
  readonly from: number;
  readonly until: number;
}

/** What comes to a process while it stands still. */
interface Held {
  readonly kind: 'timer' | 'message';
  readonly event: ScheduledEvent;
  readonly run: () => void;
}

/** What `setTimeout` gives in a simulated process. */
export class SimulatedTimer {
  event: ScheduledEvent | undefined;
  /** Set while the process stands still and the timer is due. */
  held: ScheduledEvent | undefined;

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  hasRef(): boolean {
    return true;
  }

  refresh(): this {
    return this;
  }

  cancel(): void {
    if (this.event !== undefined) this.event.isCancelled = true;
    if (this.held !== undefined) this.held.isCancelled = true;
    this.event = undefined;
  }
}

/** A process with clocks of its own. Whatever runs in it runs by `run`: after a crash nothing does, in a pause it waits. */
export class SimulatedProcess {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly world: World;
  readonly random: SeededRandom;
  readonly #latenessMs: number;
  #held: Held[] = [];
  #pausedUntil = 0;
  #standsStill = false;
  #resumes = false;
  #crashed = false;
  /** Called with each event of the protocol between its locks and their store, where a trace is kept. */
  onProtocol: ((message: ProtocolMessage) => void) | undefined;
  /** Where it will stand still in the middle of an event, and how often it passes that place before. */
  #stall: Stall | undefined;
  #passes = 0;
  /** The event of the world in which code of the process runs; set while a stall is to come. */
  #turn = -1;
  #standsSince = 0;
  readonly #stalls: PastStall[] = [];
  /** Goes on with what waits until true time has come to where the process is. */
  readonly #caughtUp: (() => void)[] = [];
  #lateTurn = -1;
  #hasStoodInTurn = false;
  /** The timer for which the clock was read before a stall, and which was set after it, and by how much it is late. */
  #lateTimer: SimulatedTimer | undefined;
  #lateMs = 0;
  /** It stands still in the middle of an event. */
  isInTurn = false;
  /** Called before the process stands still. */
  onPause: () => void = () => {};
  /** Opens a socket, where a client in the process does so itself. */
  connect: (server: { readonly host: string }) => unknown = () => undefined;
  /** Its worker threads. */
  readonly threads: WorkerThread[] = [];
  /** Starts one of them. */
  startThread: (workerData: unknown) => WorkerThread = () => {
    throw new Error(`${this.name} has no threads`);
  };
  /** Called before anything else that the process does when it goes on. */
  onResume: () => void = () => {};
  onCrash: () => void = () => {};
  /** What it shares with other processes, where it uses files. */
  machine: ProcessMachine | undefined;
  pid = 1;
  /** True time until which the code of the last event computes. */
  busyUntil = Number.NEGATIVE_INFINITY;
  /** True time of the last moment at which the process stood still. */
  stalledUntil = Number.NEGATIVE_INFINITY;

  constructor(world: World, random: SeededRandom, options: ProcessOptions) {
    this.world = world;
    this.random = random;
    this.name = options.name;
    this.clock = options.clock ?? new ProcessClock(world, options.drift, options.wallOffset);
    this.#latenessMs = options.timerLatenessMs;
  }

  randomBytes(size: number): Buffer {
    const words = new Uint32Array(Math.ceil(size / 4));
    for (let at = 0; at < words.length; at += 1) words[at] = this.random.word();
    return Buffer.from(words.buffer, 0, size);
  }

  get isCrashed(): boolean {
    return this.#crashed;
  }

  /** No code of it runs. */
  get standsStill(): boolean {
    return this.#standsStill;
  }

  /** Also while what came in the meantime is worked off. */
  get isPaused(): boolean {
    return this.#resumes;
  }

  /** Stands still for so long: no timer fires and no message is read. Its clocks go on. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.world.now + ms);
    if (this.#standsStill || this.#crashed) return;
    this.onPause();
    this.#stopUntil(this.#pausedUntil);
  }

  #stopUntil(until: number): void {
    const { world } = this;
    this.#standsSince = world.now;
    this.#standsStill = true;
    this.#resumes = true;
    world.note(this.name, () => (this.isInTurn ? 'stands still in the middle of a turn' : 'stands still'));
    world.schedule(until, () => this.#resume());
  }

  /** Stands still in the middle of one of the next iterations of its event loop. */
  stallIn(stall: Stall): void {
    this.#stall = stall;
    this.#passes = stall.passes;
  }

  /** Code of the process has come to a place at which its event loop may stand still. */
  passes(place: StallPlace): void {
    if (this.#stall !== undefined) this.#mayStandStill(this.#stall, place);
  }

  #mayStandStill({ place, ms }: Stall, at: StallPlace): void {
    if (place !== at || this.#turn !== this.world.turn || this.#resumes || this.#crashed) return;
    this.#passes -= 1;
    if (this.#passes >= 0) return;
    this.#stall = undefined;
    this.isInTurn = true;
    this.#hasStoodInTurn = true;
    this.world.countFault('stall');
    if (place === 'timer') this.#lateMs = ms;
    this.#pausedUntil = this.world.now + ms;
    this.#stopUntil(this.#pausedUntil);
    this.world.goAhead(this.#pausedUntil);
  }

  /** By how much a timer that is set may be late: the clock was read for it before a stall. */
  get timerLateMs(): number {
    return this.#lateTimer?.event === undefined ? 0 : this.#lateMs;
  }

  /** True time until which it stands still in the middle of an event. */
  get stallEndsAt(): number {
    return this.isInTurn ? this.#pausedUntil : 0;
  }

  /** Looks at what belongs to the process: that takes no time of it. */
  look<T>(look: () => T): T {
    const turn = this.#turn;
    this.#turn = -1;
    try {
      return look();
    } finally {
      this.#turn = turn;
    }
  }

  /** How long it stood still since a true time, in milliseconds of true time. */
  stoodFor(since: number): number {
    const present = this.#standsStill ? [{ from: this.#standsSince, until: this.world.now }] : [];
    return [...this.#stalls, ...present].reduce(
      (sum, { from, until }) => sum + Math.max(0, until - Math.max(from, since)),
      0,
    );
  }

  /**
   * How much longer a call may last that began at a true time, for the stalls of the process. A stall between a look at the clock and the
   * setting of a timer makes that timer late by as much: it counts for later calls, too.
   */
  stoodBeside(since: number): number {
    return this.stoodFor(this.#hasStoodInTurn ? 0 : since);
  }

  /** Whether the present event is the rest of one in whose middle the process stood still. */
  get isLate(): boolean {
    return this.#lateTurn === this.world.turn;
  }

  /**
   * Resolves once true time has come to where the process is, which stood still in this event: what is looked at of others is of the same
   * time then.
   */
  caughtUp(): Promise<void> {
    return new Promise((resolve) => this.#caughtUp.push(resolve));
  }

  /** Ends without warning. */
  crash(): void {
    this.#crashed = true;
    this.#held = [];
    this.world.note(this.name, () => 'crashes');
    this.machine?.ended();
    for (const { thread } of this.threads) thread.crash();
    this.onCrash();
  }

  /** Something of the outside reaches the process at this true time. */
  deliver(at: number, run: () => void): void {
    const event = this.world.schedule(at, () => this.#run('message', event, run));
  }

  /** What follows from what ran before: it waits where the process has stopped in the middle of that, or still computes. */
  goOn(run: () => void): void {
    const { now } = this.world;
    if (this.#standsStill || now < this.busyUntil) this.deliver(this.busyUntil, run);
    else if (!this.#crashed) run();
  }

  setTimeout(callback: (...values: never[]) => void, ms: number, ...values: never[]): SimulatedTimer {
    const lateBefore = this.#lateMs;
    this.passes('timer');
    const timer = this.#timer(Math.max(1, Math.trunc(ms) || 1), () => callback(...values));
    if (this.#lateMs !== lateBefore) this.#lateTimer = timer;
    return timer;
  }

  setInterval(callback: () => void, ms: number): SimulatedTimer {
    const timer = new SimulatedTimer();
    if (ms > FOR_EVER_MS) return timer;
    const again = (): void => {
      this.#arm(timer, ms, () => {
        again();
        callback();
      });
    };
    again();
    return timer;
  }

  setImmediate(callback: (...values: never[]) => void, ...values: never[]): SimulatedTimer {
    return this.#timer(0, () => callback(...values));
  }

  /** Resolves after so many milliseconds by the process's clock. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.setTimeout(() => (this.world.isAhead ? void this.caughtUp().then(resolve) : resolve()), ms);
    });
  }

  #timer(ms: number, run: () => void): SimulatedTimer {
    const timer = new SimulatedTimer();
    if (ms <= FOR_EVER_MS) this.#arm(timer, ms, run);
    return timer;
  }

  #arm(timer: SimulatedTimer, ms: number, run: () => void): void {
    const late = ms === 0 ? 0 : this.random.next() * this.#latenessMs;
    const event = this.world.schedule(
      this.world.now + this.clock.ahead + this.clock.trueTime(ms) + late,
      () => {
        timer.event = undefined;
        timer.held = event;
        this.#run('timer', event, run);
      },
    );
    timer.event = event;
  }

  #run(kind: Held['kind'], event: ScheduledEvent, run: () => void): void {
    if (this.#crashed) return;
    if (this.#resumes) return void this.#held.push({ kind, event, run });
    if (this.#stall !== undefined) this.#begins(this.#stall);
    run();
  }

  #begins({ place }: Stall): void {
    this.onPause();
    this.#turn = this.world.turn;
    this.passes('begin');
    if (place !== 'between microtasks') return;
    const { turn } = this.world;
    const next = (): void => {
      this.passes(place);
      if (this.#stall !== undefined && turn === this.world.turn && (left -= 1) > 0) queueMicrotask(next);
    };
    let left = MOST_MICROTASKS;
    queueMicrotask(next);
  }

  #resume(): void {
    const { world } = this;
    if (this.#crashed) return;
    if (world.now < this.#pausedUntil) return void world.schedule(this.#pausedUntil, () => this.#resume());
    world.note(this.name, () => 'goes on');
    if (this.#standsStill) this.#stalls.push({ from: this.#standsSince, until: world.now });
    this.#standsStill = false;
    this.isInTurn = false;
    this.#lateTurn = this.#caughtUp.length > 0 ? world.turn : -1;
    // The rest of the event in which it stood still comes before anything else.
    for (const goOn of this.#caughtUp.splice(0)) goOn();
    this.onResume();
    // Node's event loop may come back in either phase: due timers first, or what the sockets have.
    const first = this.random.chance(0.5) ? 'timer' : 'message';
    const held = this.#held.splice(0);
    const inOrder = [
      ...held.filter(({ kind }) => kind === first),
      ...held.filter(({ kind }) => kind !== first),
    ];
    for (const each of inOrder) {
      world.schedule(world.now, () => {
        if (each.event.isCancelled || this.#crashed) return;
        // Another pause has begun in the moment in which this one ended.
        if (this.#standsStill) this.#held.push(each);
        else each.run();
      });
    }
    world.schedule(world.now, () => this.#wentOn());
  }

  #wentOn(): void {
    if (this.#standsStill) return;
    this.#resumes = false;
    this.stalledUntil = this.world.now;
    if (this.#held.length === 0) return;
    // Work that came while the rest was worked off.
    this.#resumes = true;
    this.#resume();
  }
}
