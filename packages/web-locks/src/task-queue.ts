/** The number of ticks after which a task without an answer is overdue: after 1 s, and the rest of a tick at most. */
const OVERDUE_TICKS = 4;
const TICK_MS = 250;

/** Sends something to the store; the promise settles when the store has answered. */
export type Task = () => Promise<unknown>;

/**
 * The lock task queue of the specification, for one client: each task starts when the one before it is answered. A store
 * that stalls delays nothing for ever: while a task is overdue, all others start at once.
 */
export class TaskQueue {
  readonly #waiting = new Set<Task>();
  readonly #running = new Set<Task>();
  /** Running tasks that the others no longer wait for. */
  readonly #overdue = new Set<Task>();
  #isUnblocked = false;
  #watch: NodeJS.Timeout | undefined;
  #watched: Task | undefined;
  #ticks = 0;

  /** Whether the running task that asks is the only one left. */
  get isLast(): boolean {
    return this.#running.size === 1 && this.#waiting.size === 0;
  }

  add(task: Task): void {
    if (this.#running.size === 0 || this.#startsAtOnce) return this.#start(task);
    this.#waiting.add(task);
    this.#watch ??= setInterval(() => this.#tick(), TICK_MS);
  }

  /** Resolves when every task that was added before is answered or overdue. */
  answered(): Promise<void> {
    return new Promise((resolve) => this.add(async () => resolve()));
  }

  /** Starts all waiting tasks, and from now on every task at once. */
  unblock(): void {
    this.#isUnblocked = true;
    this.#startAll();
  }

  get #startsAtOnce(): boolean {
    return this.#isUnblocked || this.#overdue.size > 0;
  }

  #start(task: Task): void {
    this.#running.add(task);
    const end = (): void => {
      this.#running.delete(task);
      this.#overdue.delete(task);
      if (this.#running.size === 0) this.#startNext();
    };
    task().then(end, end);
  }

  #startNext(): void {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#waiting.delete(next);
    if (this.#waiting.size === 0) this.#stopWatching();
    this.#start(next);
  }

  #startAll(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#stopWatching();
    for (const task of waiting) this.#start(task);
  }

  /** Counts ticks, not time: after a stall of this process, answers that have arrived are read before the next tick. */
  #tick(): void {
    const [first] = this.#running;
    if (first !== this.#watched) {
      this.#watched = first;
      this.#ticks = 0;
    }
    this.#ticks += 1;
    if (this.#ticks <= OVERDUE_TICKS) return;
    for (const task of this.#running) this.#overdue.add(task);
    this.#startAll();
  }

  #stopWatching(): void {
    clearInterval(this.#watch);
    this.#watch = undefined;
    this.#watched = undefined;
  }
}
