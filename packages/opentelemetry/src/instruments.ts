import type { Counter, Histogram, Meter, ObservableUpDownCounter } from '@opentelemetry/api';

/** The metrics of locks. Durations are seconds. */
export interface Instruments {
  readonly acquireDuration: Histogram;
  readonly holdDuration: Histogram;
  readonly held: ObservableUpDownCounter;
  readonly waiting: ObservableUpDownCounter;
  readonly lost: Counter;
  readonly renewals: Counter;
  readonly renewalMargin: Histogram;
  readonly handOffGap: Histogram;
  readonly lateReleases: Counter;
  readonly loopBlockDuration: Histogram;
  readonly slowHolds: Counter;
  readonly deadlocks: Counter;
  readonly releaseFailures: Counter;
  readonly abandonFailures: Counter;
  readonly fenceRejected: Counter;
}

/** Bucket boundaries: from an uncontended acquire in memory to the longest wait that people give a job. */
const ACQUIRE_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];
const HOLD_SECONDS = [0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600];
/** Bucket boundaries: from a third of a short ttl to the longest block that a renewal thread is given. */
const BLOCK_SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 120, 300];
/**
 * Bucket boundaries of the remaining share of validity. A renewal is sent in a third of the ttl: a store that answers at once
 * leaves two thirds.
 */
const SHARES = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.8, 1];
const GAP_SECONDS = [
  0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5,
];

export function instrumentsOf(meter: Meter): Instruments {
  const counter = (name: string, unit: string, description: string): Counter =>
    meter.createCounter(name, { unit, description });
  const histogram = (name: string, unit: string, description: string, boundaries: number[]): Histogram =>
    meter.createHistogram(name, {
      unit,
      description,
      advice: { explicitBucketBoundaries: boundaries },
    });
  const gauge = (name: string, unit: string, description: string): ObservableUpDownCounter =>
    meter.createObservableUpDownCounter(name, { unit, description });
  return {
    acquireDuration: histogram(
      'lock.acquire.duration',
      's',
      'From the call of acquire to its end, with or without a lease.',
      ACQUIRE_SECONDS,
    ),
    holdDuration: histogram('lock.hold.duration', 's', 'From the grant of a lease to its end.', HOLD_SECONDS),
    held: gauge('lock.held', '{lease}', 'Leases that this process holds.'),
    waiting: gauge('lock.waiting', '{acquire}', 'Acquires of this process that wait for other holders.'),
    lost: counter('lock.lost', '{lease}', 'Leases that ended without their holder asking.'),
    renewals: counter('lock.renewals', '{renewal}', 'Renewals, confirmed and failed.'),
    renewalMargin: histogram(
      'lock.renewal.margin',
      '1',
      "Share of the lease's validity that was left when the store confirmed its renewal.",
      SHARES,
    ),
    handOffGap: histogram(
      'lock.handoff.gap',
      's',
      'From a release to the next grant, of two holders in this process between whom nobody held.',
      GAP_SECONDS,
    ),
    lateReleases: counter(
      'lock.release.late',
      '{release}',
      "Releases that were sent in the last fifth of the lease's validity.",
    ),
    loopBlockDuration: histogram(
      'lock.loop.block.duration',
      's',
      'For how long the event loop stood still at least, in blocks of a third of the shortest ttl or more.',
      BLOCK_SECONDS,
    ),
    slowHolds: counter('lock.hold.slow', '{lease}', 'Leases that were held for more than twice their ttl.'),
    deadlocks: counter(
      'lock.deadlocks',
      '{acquire}',
      'Acquires that ended since they were in a circle of waits.',
    ),
    releaseFailures: counter('lock.release.failures', '{release}', 'Releases without an answer.'),
    abandonFailures: counter(
      'lock.abandon.failures',
      '{acquire}',
      'Acquisitions that were given up and could not be removed from the store: they end by their ttl.',
    ),
    fenceRejected: counter(
      'lock.fence.rejected',
      '{write}',
      'Fenced writes that were refused: a newer token had written.',
    ),
  };
}
