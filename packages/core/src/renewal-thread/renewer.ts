import { existsSync } from 'node:fs';
import { isMainThread, MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { copiedGrant } from '../backend/copied-grant.ts';
import type { Grant, LockBackend } from '../backend/types.ts';
import { LockError, messageOf } from '../errors.ts';
import { publish } from '../events.ts';
import type { Clock } from '../lifetime/clock.ts';
import type { FromThread, StackMessage, ThreadData } from './messages.ts';
import { beatEveryMs, MAIN_BEAT, monotonicNs, NS_PER_MS, sharedCells, THREAD_BEATS } from './shared-lease.ts';
import { type Message, SharedRenewal } from './shared-renewal.ts';

// Taken when the module is loaded, as the clock is: fake timers of a test runner send no heartbeats.
const { setInterval, clearInterval, setTimeout, clearTimeout } = globalThis;

/** After so many heartbeats they follow the leases that are left: a short one may have ended. */
const BEATS = 64;
/** A thread that was late, and has not counted up for so long after that, in milliseconds, hangs. */
const HANGS_AFTER_MS = 1_000;
/** A difference of the two clocks that is no gain of the wall clock, but the time between two readings. */
const NOISE_MS = 1;

/** The renewal thread of one manager, as the event loop sees it. */
export class Renewer {
  /** Resolves when the thread can renew, or never will. */
  readonly started: Promise<void>;
  /** Why the thread never started: no lease is acquired then. */
  failure: LockError | undefined;
  readonly #backend: string;
  readonly #clock: Clock;
  readonly #cells = sharedCells(2);
  readonly #maxBlockedMs: number;
  /** On which the thread sends stacks, to be read at any time, and before any message of the worker. */
  readonly #stacks: MessageChannel | undefined;
  readonly #worker: Worker;
  readonly #kept = new Map<number, SharedRenewal>();
  readonly #releasing = new WeakMap<Grant, SharedRenewal>();
  #ids = 0;
  #state: 'starting' | 'running' | 'ended' = 'starting';
  #beats: NodeJS.Timeout | undefined;
  #beatMs = Number.POSITIVE_INFINITY;
  /** When the last heartbeat was sent, on the manager's clock. */
  #beatAt = 0;
  /** Is told of a block before each heartbeat. */
  monitor: { tellBlock(now: number): void } | undefined;
  #resolveStarted = (): void => {};
  /** What the counter of the thread was when a lease was late, and when that was. */
  #late: { readonly beats: bigint; readonly at: bigint } | undefined;
  /** From which monotonic time on the manager's clock was ahead of it by how much: it grows when a machine has slept. */
  #offsets: { readonly from: number; readonly ms: number }[] = [];

  constructor(
    module: string,
    maxBlockedMs: number,
    startTimeoutMs: number,
    captureStack: boolean,
    { name }: LockBackend,
    clock: Clock,
  ) {
    this.#backend = name;
    this.#clock = clock;
    this.#maxBlockedMs = maxBlockedMs;
    this.started = new Promise((resolve) => (this.#resolveStarted = resolve));
    // A thread reaches the main thread alone, and not another one that has started it.
    if (captureStack && isMainThread) this.#stacks = new MessageChannel();
    const stacks = this.#stacks?.port2;
    const workerData = { module, maxBlockedMs, cells: this.#cells, stacks } satisfies ThreadData;
    const transferList = stacks === undefined ? [] : [stacks];
    this.#worker = new Worker(program(name), { workerData, transferList, name: 'locks-renewal' });
    const late = (): void =>
      this.#failed('LOCK_BACKEND', `it did not start within startTimeoutMs (${startTimeoutMs} ms)`);
    const timer = setTimeout(late, startTimeoutMs).unref();
    void this.started.then(() => clearTimeout(timer));
    this.#worker.on('message', (message: FromThread) => this.#receive(message));
    this.#worker.on('error', (error) => this.#stopped(error));
    this.#worker.on('exit', (code) => this.#stopped(new Error(`it ended with the exit code ${code}`)));
  }

  get isStarting(): boolean {
    return this.#state === 'starting';
  }

  get isRunning(): boolean {
    return this.#state === 'running';
  }

  /** Renews a lease from now on, every third of its ttl; `undefined` where the thread has ended. Times are those of the manager's clock. */
  keep(grant: Grant, ttlMs: number, countedFrom: number, renewUntil: number): SharedRenewal | undefined {
    if (!this.isRunning) return undefined;
    const id = (this.#ids += 1);
    this.#beat();
    this.#beatFor(ttlMs);
    const at = monotonicNs();
    // In this order: should the process stand still between the two readings, the thread knows of less time left, never of more.
    const now = this.#clock.now();
    const kept = new SharedRenewal(this, id, ttlMs, countedFrom, at - ns(now - countedFrom));
    this.#kept.set(id, kept);
    this.post({
      op: 'keep',
      id,
      grant: { ...copiedGrant(grant), countedFrom, validForMs: ttlMs },
      ttlMs,
      renewForMs: renewUntil - now,
      cells: kept.cells,
    });
    return kept;
  }

  /** Ends the renewal of a lease that is released now. */
  release(grant: Grant, kept: SharedRenewal): void {
    this.#releasing.set(grant, kept);
    kept.endByRelease();
  }

  /** The renewal of a lease whose release the thread may send, too. */
  releasing(grant: Grant): SharedRenewal | undefined {
    return this.#releasing.get(grant);
  }

  /** Is told that a lease was not renewed in time by the thread. */
  isLate(): void {
    const beats = Atomics.load(this.#cells, THREAD_BEATS);
    const at = monotonicNs();
    if (this.#late?.beats !== beats) this.#late = { beats, at };
    else if (at - this.#late.at > ns(HANGS_AFTER_MS)) this.#stopped(new Error('it hangs'));
  }

  /** For how long the event loop has stood still at least, by the heartbeat that it was to send, at a time of the manager's clock. */
  blockedMs(now: number): number {
    return this.#beats === undefined ? 0 : now - this.#beatAt - this.#beatMs;
  }

  /** The stack of what has blocked the event loop since the last heartbeat, where the thread has taken it. */
  takeStack(): string | undefined {
    if (this.#stacks === undefined) return undefined;
    const last = Atomics.load(this.#cells, MAIN_BEAT);
    let taken: string | undefined;
    for (let next; (next = receiveMessageOnPort(this.#stacks.port1)) !== undefined; ) {
      const { beat, stack } = next.message as StackMessage;
      if (beat === last) taken = stack;
    }
    return taken;
  }

  async close(): Promise<void> {
    this.#state = 'ended';
    this.#endBeats();
    this.#stacks?.port1.close();
    this.#worker.unref();
    this.#resolveStarted();
    await this.#worker.terminate();
  }

  /** The time on the manager's clock of a monotonic time, or an earlier one. */
  timeOf(countedFromNs: bigint): number {
    const ms = Number(countedFromNs) / NS_PER_MS;
    // A gain of the clock that was found after that time may have come before it, or after it: it counts as time that has passed since.
    const offset = this.#offsets.findLast(({ from }) => from <= ms) ?? this.#offsets[0];
    return ms + (offset?.ms ?? Number.NEGATIVE_INFINITY);
  }

  post(message: Message): void {
    if (this.#state !== 'ended') this.#worker.postMessage({ ...message, at: monotonicNs() });
  }

  forget(id: number): void {
    this.#kept.delete(id);
  }

  /** Sends heartbeats as often as a lease of this ttl needs them, and the leases that there are after many of them. */
  #beatFor(ttlMs: number): void {
    const beatMs = beatEveryMs(this.#maxBlockedMs, ttlMs);
    if (beatMs >= this.#beatMs) return;
    this.#endBeats();
    this.#beatMs = beatMs;
    let left = BEATS;
    this.#beats = setInterval(() => {
      this.#beat();
      left -= 1;
      // Not before: the leases that a block has ended are told with it.
      if (this.#kept.size === 0) this.#endBeats();
      else if (left === 0) {
        this.#endBeats();
        for (const { ttlMs } of this.#kept.values()) this.#beatFor(ttlMs);
      }
    }, beatMs).unref();
  }

  #endBeats(): void {
    clearInterval(this.#beats);
    this.#beats = undefined;
    this.#beatMs = Number.POSITIVE_INFINITY;
  }

  #beat(): void {
    const startedAt = this.#clock.now();
    // A third of the ttl of each lease is more than three heartbeats.
    if (this.blockedMs(startedAt) > this.#beatMs) this.monitor?.tellBlock(startedAt);
    // In this order: a process that stands still between the two readings is behind with the gain, never ahead.
    const now = this.#clock.now();
    const at = monotonicNs();
    this.#beatAt = now;
    Atomics.store(this.#cells, MAIN_BEAT, at);
    const from = Number(at) / NS_PER_MS;
    const ms = now - from;
    if (ms < (this.#offsets.at(-1)?.ms ?? Number.NEGATIVE_INFINITY) + NOISE_MS) return;
    const oldest = Math.min(from, ...[...this.#kept.values()].map((kept) => kept.countedFromMs));
    const needed = this.#offsets.findLastIndex((offset) => offset.from <= oldest);
    this.#offsets = [...this.#offsets.slice(Math.max(0, needed)), { from, ms }];
  }

  #receive(message: FromThread): void {
    switch (message.op) {
      case 'clock':
        return this.post({ op: 'clock' });
      case 'ready':
        return this.#ready(message.backend);
      case 'failed':
        return this.#failed('LOCK_INVALID_ARGUMENT', message.why, message.error);
      case 'settled':
        this.#kept.get(message.id)?.onSettled?.();
        return this.forget(message.id);
      case 'lost':
        return this.#kept.get(message.id)?.onLost(message.reason);
      case 'dropped':
        return this.#kept.get(message.id)?.onDropped();
      default:
        return message satisfies never;
    }
  }

  #ready(backend: string): void {
    if (backend !== this.#backend)
      return this.#failed('LOCK_INVALID_ARGUMENT', `its module makes the backend ${backend}`);
    if (this.#state !== 'starting') return;
    this.#state = 'running';
    this.#worker.unref();
    this.#resolveStarted();
  }

  #failed(code: 'LOCK_INVALID_ARGUMENT' | 'LOCK_BACKEND', why: string, cause?: unknown): void {
    if (this.#state !== 'starting') return;
    const says = cause === undefined ? why : `${why}: ${messageOf(cause)}`;
    const message = `The renewal thread of ${this.#backend} is of no use: ${says}.`;
    this.failure = new LockError(code, message, { backend: this.#backend, cause });
    void this.close();
  }

  /** The thread has ended by itself: the event loop renews all its leases at once. */
  #stopped(error: Error): void {
    if (this.#state === 'starting') return this.#failed('LOCK_BACKEND', 'it ended', error);
    if (this.#state === 'ended') return;
    const kept = [...this.#kept.values()];
    void this.close();
    for (const one of kept) {
      one.onDropped();
      one.onSettled?.();
    }
    publish('locks:renewal-thread-stopped', { backend: this.#backend, leases: kept.length, error });
    process.emitWarning(
      `The renewal thread of ${this.#backend} has stopped: ${messageOf(error)}. The event loop renews the leases; none outlives a block of it from now on.`,
      { code: 'LOCKS_RENEWAL_THREAD_STOPPED' },
    );
  }
}

function ns(ms: number): bigint {
  return BigInt(Math.round(ms * NS_PER_MS));
}

/**
 * The program of the thread: beside this module in `dist` as well as in `src`. In a bundle "beside" is a folder of the application: hence a
 * name that no file of an application has, which would be started in its place.
 */
function program(backend: string): URL {
  const here: string | undefined = import.meta.url;
  const found = ['js', 'ts']
    // `undefined` in what esbuild writes as CommonJS.
    .map((extension) => here && new URL(`./locks-renewal-thread.${extension}`, here))
    .find((url) => url && existsSync(url));
  if (found) return found as URL;
  throw new LockError(
    'LOCK_UNSUPPORTED',
    'The program of the renewal thread, locks-renewal-thread.js, is not beside the module that starts it, as in a bundle: let the bundler leave ' +
      '@locks/core external, or build that program beside the bundle (docs/guides/long-synchronous-work.md).',
    { backend },
  );
}
