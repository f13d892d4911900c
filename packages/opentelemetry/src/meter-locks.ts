import { type LockEvent, type LockEvents, onLockEvent } from '@locks/core';
import { matching, optional, type OptionTable, readOptions } from '@locks/core/backend';
import { type Attributes, type MeterProvider, metrics, type ObservableResult } from '@opentelemetry/api';
import { errorType, type GroupOf, outcomeOf, readGroupOf } from './attributes.ts';
import { HandOffs } from './hand-offs.ts';
import { type Instruments, instrumentsOf } from './instruments.ts';
import { RecordBatch } from './record-batch.ts';
import { AllSeries, type Series } from './series.ts';

/** Options of {@link meterLocks}. */
export interface MeterLocksOptions {
  /**
   * The destination of the metrics.
   * @defaultValue the global one, at the time of the call: start the SDK before
   */
  readonly meterProvider?: MeterProvider | undefined;
  /**
   * Maps the name of a lock to the attribute `lock.group` of its metrics.
   * @defaultValue no such attribute
   */
  readonly groupOf?: GroupOf | undefined;
}

const TABLE = {
  meterProvider: optional(
    matching(
      'a MeterProvider',
      (value): value is MeterProvider =>
        typeof (value as Partial<MeterProvider> | null)?.getMeter === 'function',
    ),
  ),
  groupOf: optional(readGroupOf),
} satisfies OptionTable<MeterLocksOptions>;

/** The share of its validity below which a lease that ends was nearly lost. */
const LATE = 1 / 5;

// setup: import { meterLocks } from '@locks/opentelemetry';
/**
 * Measures all locks of this process, of every manager and backend, from its call on, by the events of `@locks/core`. The metrics
 * are those of docs/telemetry.md.
 *
 * @returns a function that ends the measurement
 * @throws LockError `LOCK_INVALID_ARGUMENT`
 * @example
 * ```ts
 * const stop = meterLocks({ groupOf: (name) => name.split(':', 1)[0] });
 * stop(); // no more
 * ```
 */
export function meterLocks(options?: MeterLocksOptions): () => void {
  const { meterProvider = metrics.getMeterProvider(), groupOf } = readOptions('meterLocks()', options, TABLE);
  const instruments = instrumentsOf(meterProvider.getMeter('@locks/opentelemetry'));
  return new LockMeter(instruments, new AllSeries(groupOf)).start();
}

interface HeldLease {
  /** The series in which the lease began. It ends there too, also after a downgrade. */
  readonly series: Series;
  /** The fencing token, which the event of the release does not have. */
  readonly token: bigint | undefined;
}

/** Turns events into measurements. */
class LockMeter {
  readonly #instruments: Instruments;
  readonly #series: AllSeries;
  /** The measurements that every acquire and release makes. */
  readonly #batch = new RecordBatch();
  /**
   * Held leases, by acquisition. Leases and waits that began before the measurement are in neither map, and change no count
   * when they end.
   */
  readonly #held = new Map<string, HeldLease>();
  readonly #waiting = new Map<string, Series>();
  readonly #handOffs: HandOffs;

  constructor(instruments: Instruments, series: AllSeries) {
    this.#instruments = instruments;
    this.#series = series;
    this.#handOffs = new HandOffs((gapMs, of) =>
      instruments.handOffGap.record(Math.max(0, gapMs) / 1_000, series.of(of).attributes),
    );
  }

  start(): () => void {
    const { held, waiting } = this.#instruments;
    // Callbacks run before the histograms are read, so that no collection misses measurements of the batch.
    const observeHeld = (result: ObservableResult): void => {
      this.#batch.flush();
      this.#series.observe(result, 'held');
    };
    const observeWaiting = (result: ObservableResult): void => this.#series.observe(result, 'waiting');
    held.addCallback(observeHeld);
    waiting.addCallback(observeWaiting);
    const stops = [
      onLockEvent('locks:acquired', (event) => this.#acquired(event)),
      onLockEvent('locks:contended', (event) => this.#contended(event)),
      onLockEvent('locks:gave-up', (event) => this.#gaveUp(event)),
      onLockEvent('locks:released', (event) => this.#released(event)),
      onLockEvent('locks:lost', (event) => this.#lost(event)),
      onLockEvent('locks:renewed', (event) => this.#renewed(event)),
      ...this.#failures(),
    ];
    return () => {
      for (const stop of stops) stop();
      this.#batch.flush();
      held.removeCallback(observeHeld);
      waiting.removeCallback(observeWaiting);
    };
  }

  /** The events that are only counted. */
  #failures(): (() => void)[] {
    const { renewals, releaseFailures, abandonFailures, slowHolds, fenceRejected, loopBlockDuration } =
      this.#instruments;
    return [
      onLockEvent('locks:renewal-failed', (event) =>
        renewals.add(1, { ...this.#failed(event), 'lock.outcome': 'failed' }),
      ),
      onLockEvent('locks:release-failed', (event) => {
        releaseFailures.add(1, this.#failed(event));
        this.#ended(event);
      }),
      onLockEvent('locks:abandon-failed', (event) => abandonFailures.add(1, this.#failed(event))),
      onLockEvent('locks:slow-hold', (event) => slowHolds.add(1, this.#attributesOf(event))),
      onLockEvent('locks:loop-blocked', ({ backend, blockedMs }) =>
        loopBlockDuration.record(blockedMs / 1_000, { 'lock.backend': backend }),
      ),
      onLockEvent('locks:fence-rejected', ({ backend }) => fenceRejected.add(1, { 'lock.backend': backend })),
    ];
  }

  #acquired(event: LockEvents['locks:acquired']): void {
    const { acquisitionId, fencingToken, contendedAs, waitedMs } = event;
    const series = this.#series.of(event);
    series.held += 1;
    this.#held.set(acquisitionId, { series, token: fencingToken });
    if (contendedAs !== undefined) {
      if (fencingToken !== undefined) this.#handOffs.granted(event, fencingToken);
      this.#waitsNoMore(event, contendedAs);
    }
    this.#batch.add(this.#instruments.acquireDuration, waitedMs / 1_000, series.acquired);
  }

  #contended(event: LockEvents['locks:contended']): void {
    const series = this.#series.of(event);
    if (event.waits) {
      series.waiting += 1;
      this.#waiting.set(event.acquisitionId, series);
      this.#handOffs.waits(event);
      return;
    }
    const attributes = { ...series.attributes, 'lock.outcome': 'contended' };
    this.#instruments.acquireDuration.record(event.waitedMs / 1_000, attributes);
  }

  #gaveUp(event: LockEvents['locks:gave-up']): void {
    const { waitedMs, error, contendedAs } = event;
    if (contendedAs !== undefined) this.#waitsNoMore(event, contendedAs);
    const outcome = outcomeOf(error);
    if (outcome === 'deadlock') this.#instruments.deadlocks.add(1, this.#attributesOf(event));
    const attributes = { ...this.#failed(event), 'lock.outcome': outcome };
    this.#instruments.acquireDuration.record(waitedMs / 1_000, attributes);
  }

  #waitsNoMore(event: LockEvent, contendedAs: string): void {
    const series = this.#waiting.get(contendedAs);
    if (series === undefined) return;
    this.#waiting.delete(contendedAs);
    series.waiting -= 1;
    this.#handOffs.waitsNoMore(event);
  }

  #released(event: LockEvents['locks:released']): void {
    const { heldMs, tookMs, remainingMs, validForMs } = event;
    const token = this.#ended(event);
    if (token !== undefined) this.#handOffs.released(event, token, tookMs);
    const attributes = this.#attributesOf(event);
    if (remainingMs < LATE * validForMs) this.#instruments.lateReleases.add(1, attributes);
    this.#batch.add(this.#instruments.holdDuration, heldMs / 1_000, attributes);
  }

  #lost(event: LockEvents['locks:lost']): void {
    this.#ended(event);
    const attributes = this.#attributesOf(event);
    this.#instruments.lost.add(1, { ...attributes, 'lock.reason': event.reason });
    this.#instruments.holdDuration.record(event.heldMs / 1_000, attributes);
  }

  #renewed(event: LockEvents['locks:renewed']): void {
    const { remainingMs, validForMs } = event;
    const attributes = this.#attributesOf(event);
    // A session of the store's own may be valid for longer than the ttl of the lease.
    const share = Math.min(1, Math.max(0, remainingMs / validForMs));
    this.#instruments.renewalMargin.record(share, attributes);
    this.#instruments.renewals.add(1, { ...attributes, 'lock.outcome': 'renewed' });
  }

  /** Gives the token of a lease that ended. */
  #ended(event: LockEvent): bigint | undefined {
    const { acquisitionId } = event;
    const held = this.#held.get(acquisitionId);
    if (held === undefined) return undefined;
    this.#held.delete(acquisitionId);
    held.series.held -= 1;
    if (held.token !== undefined) this.#handOffs.ended(event, held.token);
    return held.token;
  }

  #attributesOf(event: LockEvent): Attributes {
    return this.#series.of(event).attributes;
  }

  #failed(event: LockEvent & { readonly error: unknown }): Attributes {
    return { ...this.#attributesOf(event), 'error.type': errorType(event.error) };
  }
}
