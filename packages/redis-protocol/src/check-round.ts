import { scripts } from './generated/scripts.ts';
import type { Settings } from './options.ts';
import type { RedisPort } from './port.ts';
import { isRetryableRedisError } from './retryable.ts';
import { runScript } from './run-script.ts';
import type { Waiter, WaitingRoom } from './waiting-room.ts';

const waitersPerCommand = 200;
/** In a cluster a command serves one slot: more slots than this are looked after in turns. */
const commandsPerRound = 64;

interface Batch {
  readonly notify: string;
  readonly resources: Waiter[][];
  count: number;
}

/** The look after all waiters of a process: see `check.lua`. */
export class CheckRound {
  readonly #port: RedisPort;
  readonly #settings: Settings;
  readonly #room: WaitingRoom;
  #busySince: number | undefined;
  #turns = 1;
  #turn = 0;

  constructor(port: RedisPort, settings: Settings, room: WaitingRoom) {
    this.#port = port;
    this.#settings = settings;
    this.#room = room;
  }

  /** For how long a process that sends nothing counts as alive: three checks and a claim. */
  get aliveMs(): number {
    return this.#settings.claimMs + 3 * this.#settings.checkIntervalMs * this.#turns;
  }

  /** The regular look, over the budgeted part of them. */
  runInTurn(waiters: Iterable<Waiter>): void {
    const now = performance.now();
    // A look that never ends (an offline queue) must not end them for good.
    if (this.#busySince !== undefined && now - this.#busySince < 3 * this.#settings.checkIntervalMs) return;
    this.#busySince = now;
    void Promise.allSettled(this.#inTurn(this.#batches(waiters)).map((batch) => this.#check(batch))).then(
      () => {
        if (this.#busySince === now) this.#busySince = undefined;
      },
    );
  }

  /** At once, and all of them. */
  run(waiters: Iterable<Waiter>): void {
    void Promise.allSettled(this.#batches(waiters).map((batch) => this.#check(batch)));
  }

  #batches(waiters: Iterable<Waiter>): Batch[] {
    const resources = new Map<string, Waiter[]>();
    for (const waiter of waiters) {
      if (!this.#room.isWaiting(waiter) || waiter.moving) continue;
      const key = waiter.notify + waiter.keys.lock;
      const together = resources.get(key);
      if (together) together.push(waiter);
      else resources.set(key, [waiter]);
    }
    const open = new Map<string, Batch>();
    const batches: Batch[] = [];
    for (const together of resources.values()) {
      for (let at = 0; at < together.length; at += waitersPerCommand) {
        const part = together.slice(at, at + waitersPerCommand);
        const { notify, keys } = part[0] as Waiter;
        const group = this.#port.cluster ? `${keys.slot}${notify}` : notify;
        let batch = open.get(group);
        if (batch === undefined || batch.count + part.length > waitersPerCommand) {
          batch = { notify, resources: [], count: 0 };
          batches.push(batch);
          open.set(group, batch);
        }
        batch.resources.push(part);
        batch.count += part.length;
      }
    }
    return batches;
  }

  #inTurn(batches: Batch[]): Batch[] {
    const former = this.#turns;
    this.#turns = Math.max(1, Math.ceil(batches.length / commandsPerRound));
    // Those that came since count as alive for as many turns as there were: all are checked once.
    if (this.#turns === 1 || this.#turns > former) return batches;
    this.#turn = (this.#turn + 1) % this.#turns;
    // By what does not change when others come and go: none is left out for long.
    return batches.filter(
      ({ resources }) => (resources[0]?.[0]?.keys.slot ?? 0) % this.#turns === this.#turn,
    );
  }

  async #check(batch: Batch): Promise<void> {
    const keys: string[] = [];
    const waiters = batch.resources.flat();
    // The channel is open by now: waiters that entered before are to be told there.
    const { notify } = this.#room.subscription;
    const former = batch.notify === notify ? '' : batch.notify.charAt(0);
    const args: string[] = [`${this.aliveMs}|${former}|${notify}`];
    for (const together of batch.resources) {
      const { lock, token, queue } = (together[0] as Waiter).keys;
      keys.push(lock, token, queue);
      args.push(String(together.length));
      for (const { request, place } of together) {
        const limit = request.mode.kind === 'permit' ? `:${request.mode.limit}` : '';
        args.push(this.#room.memberOf(request, notify), `${place}${limit}`);
      }
    }
    if (former !== '') for (const waiter of waiters) waiter.moving = true;
    const sentAt = batch.resources.map((together) => together.map(({ call }) => call.now()));
    let replies: unknown[];
    try {
      replies = (await runScript(
        this.#port,
        scripts.check,
        keys as [string, ...string[]],
        args,
      )) as unknown[];
    } catch (error) {
      if (!isRetryableRedisError(error)) for (const waiter of waiters) this.#room.hint(waiter);
      return;
    } finally {
      for (const waiter of waiters) waiter.moving = false;
    }
    for (const waiter of waiters) waiter.notify = notify;
    for (const [at, waiters] of batch.resources.entries())
      this.#apply(waiters, sentAt[at] as number[], replies[at]);
  }

  #apply(waiters: readonly Waiter[], sentAt: readonly number[], reply: unknown): void {
    const [last, ...granted] = Array.isArray(reply) ? (reply as unknown[]) : [reply];
    const floor = Number(last);
    for (const [at, waiter] of waiters.entries()) {
      const own = granted.indexOf(waiter.request.acquisitionId);
      if (Number.isNaN(floor)) this.#room.hint(waiter);
      else if (own < 0) this.#room.stillWaiting(waiter, sentAt[at] as number, floor);
      else {
        const validForMs = Number(granted[own + 2]) - 1;
        this.#room.deliver(waiter, Number(granted[own + 1]), sentAt[at] as number, validForMs);
      }
    }
  }
}
