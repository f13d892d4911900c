import type { BaseLease, Lease, Lock, LockManager } from '@locks/core';
import {
  abortSignal,
  invalidArgument,
  matching,
  mustBe,
  oneOf,
  optional,
  type OptionTable,
  readOptions,
  text,
  wholeNumber,
} from '@locks/core/backend';
import { type BackoffOptions, readBackoff } from './back-off.ts';
import { Campaign } from './campaign.ts';
import { changes, type LeaderInfo, readPollMs } from './leader.ts';
import type { BaseLeadership, Leadership } from './leadership.ts';

/** Options of `lead` of an `Election`. All times are milliseconds. */
export interface LeadOptions {
  /** Ends the campaign: a leader resigns, a candidate leaves the queue, and `lead` resolves. */
  readonly signal?: AbortSignal | undefined;
  /**
   * The ttl of the lease: how long the store keeps the leadership of a process that died or stands still. It is the longest
   * time without a leader after that. The lease is renewed every third of the ttl, which must be longer than any stall of the
   * event loop.
   * @defaultValue that of the manager: 30 000
   */
  readonly ttlMs?: number | undefined;
  /**
   * The name of this candidate in `leader` and `watch`, for example its address: at most 256 UTF-8 bytes, no control
   * characters.
   * @defaultValue that of the manager: `host:pid`
   */
  readonly label?: string | undefined;
  /** The pause between two leaderships of this candidate, and after failures. */
  readonly backoff?: BackoffOptions | undefined;
  /**
   * The effect of an error of the work. `end`: this candidate resigns, and `lead` rejects with the error. `campaign`: it
   * resigns, `onError` gets the error, and after the back-off it is a candidate again.
   * @defaultValue 'end'
   */
  readonly whenWorkFails?: 'end' | 'campaign' | undefined;
  /**
   * Called with every error after which the campaign goes on: of a store that is away, and of the work. Required where
   * `whenWorkFails` is `campaign`. An error that `onError` throws ends the campaign.
   */
  readonly onError?: ((error: unknown) => void) | undefined;
  /**
   * Called with the leader of the moment and then with every change that is seen, as `watch` gives them, also while this
   * candidate leads. An error that `onLeader` throws ends the campaign.
   */
  readonly onLeader?: ((leader: LeaderInfo | undefined) => void) | undefined;
  /**
   * The interval at which the store is asked for `onLeader`; 10 or more.
   * @defaultValue 1 000
   */
  readonly pollMs?: number | undefined;
}

const readFunction = matching(
  'a function',
  (value): value is (argument: unknown) => void => typeof value === 'function',
);
/** Core refuses a ttl below the minimum of the backend, and a label that is too long. */
const TABLE = {
  signal: optional(abortSignal),
  ttlMs: optional(wholeNumber(10, 31_536_000_000, 'milliseconds')),
  label: optional(text('a string', /^/)),
  backoff: readBackoff,
  whenWorkFails: optional(oneOf('end', 'campaign'), 'end'),
  onError: optional(readFunction),
  onLeader: optional(readFunction),
  pollMs: optional(readPollMs, 1_000),
} satisfies OptionTable<LeadOptions>;

/** Takes part in an election: `lead` of `Election` has the promises. */
export async function lead<L extends BaseLease>(
  locks: Pick<LockManager<L>, 'lock' | 'inspect'>,
  name: string,
  work: (leadership: Leadership<L>) => unknown,
  options: LeadOptions | undefined,
): Promise<void> {
  if (typeof work !== 'function')
    throw mustBe('lead(work, options): the work, which comes first,', 'a function', work);
  const { signal, ttlMs, label, onLeader, pollMs, ...rest } = readOptions('lead()', options, TABLE);
  if (rest.whenWorkFails === 'campaign' && rest.onError === undefined) {
    throw invalidArgument(
      "lead(): onError must be given where whenWorkFails is 'campaign': nobody else gets the error of the work.",
    );
  }
  // Every lease of core has the property `fencingToken`; the types say where it is `undefined`.
  const lock = locks.lock(name, { ttlMs, label }) as Lock<BaseLease> as Lock<Lease>;
  const campaign = new Campaign(lock, { ...rest, work: work as (leadership: BaseLeadership) => unknown });
  const stop = (): void => campaign.end(signal?.reason);
  if (signal?.aborted) return;
  signal?.addEventListener('abort', stop, { once: true });
  try {
    if (onLeader === undefined) await campaign.run();
    else await Promise.all([campaign.run(), tell(onLeader, locks, name, pollMs, campaign)]);
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}

/** Calls `onLeader` until the campaign ends; its error ends the campaign. */
async function tell(
  onLeader: (leader: LeaderInfo | undefined) => void,
  locks: Pick<LockManager<BaseLease>, 'inspect' | 'lock'>,
  name: string,
  pollMs: number,
  campaign: Campaign,
): Promise<void> {
  try {
    for await (const current of changes(locks, name, pollMs, campaign.signal, false)) onLeader(current);
  } catch (error) {
    campaign.end(error);
    await campaign.ended;
    throw error;
  }
}
