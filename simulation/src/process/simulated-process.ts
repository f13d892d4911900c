import { Buffer } from 'node:buffer';
import type { ScheduledEvent } from '../kernel/event-queue.ts';
import type { SeededRandom } from '../kernel/seeded-random.ts';
import type { World } from '../kernel/world.ts';
import { ProcessClock } from './process-clock.ts';
import type { ProcessMachine } from './process-machine.ts';

/** A timer of more than this is only set to keep a process alive. */
const FOR_EVER_MS = 1e9;

export interface ProcessOptions {
  readonly name: string;
  readonly drift: number;
  /** How far its wall clock is off, in milliseconds. */
  readonly wallOffset: number;
  /** How late its timers fire at most, in milliseconds. */
  readonly timerLatenessMs: number;
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
  /** Called before the process stands still. */
  onPause: () => void = () => {};
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
    this.clock = new ProcessClock(world, options.drift, options.wallOffset);
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
    if (this.#resumes || this.#crashed) return;
    this.onPause();
    this.#standsStill = true;
    this.#resumes = true;
    this.world.note(this.name, () => 'stands still');
    this.world.schedule(this.#pausedUntil, () => this.#resume());
  }

  /** Ends without warning. */
  crash(): void {
    this.#crashed = true;
    this.#held = [];
    this.world.note(this.name, () => 'crashes');
    this.machine?.ended();
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
    return this.#timer(Math.max(1, Math.trunc(ms) || 1), () => callback(...values));
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
    return new Promise((resolve) => void this.setTimeout(resolve, ms));
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
    if (this.#resumes) this.#held.push({ kind, event, run });
    else run();
  }

  #resume(): void {
    const { world } = this;
    if (this.#crashed) return;
    if (world.now < this.#pausedUntil) return void world.schedule(this.#pausedUntil, () => this.#resume());
    world.note(this.name, () => 'goes on');
    this.#standsStill = false;
    this.onResume();
    // Node's event loop may come back in either phase: due timers first, or what the sockets have.
    const first = this.random.chance(0.5) ? 'timer' : 'message';
    const held = this.#held.splice(0);
    const inOrder = [
      ...held.filter(({ kind }) => kind === first),
      ...held.filter(({ kind }) => kind !== first),
    ];
    for (const { event, run } of inOrder) {
      world.schedule(world.now, () => {
        if (!event.isCancelled && !this.#crashed) run();
      });
    }
    world.schedule(world.now, () => this.#wentOn());
  }

  #wentOn(): void {
    this.#resumes = false;
    this.stalledUntil = this.world.now;
    if (this.#held.length === 0) return;
    // Work that came while the rest was worked off.
    this.#resumes = true;
    this.#resume();
  }
}
