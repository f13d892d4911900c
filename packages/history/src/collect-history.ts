import { HistoryError, type HistoryPosition, show } from './history-error.ts';
import { checkEvent, EXCLUSIVE, type HistoryEvent, type HistoryMode } from './history-event.ts';
import type { HistoryOperation, RecordedAcquisition } from './history-operation.ts';
import { HistoryReader } from './read-history.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** A history, grouped by resource and acquisition. */
export interface CollectedHistory {
  /** The number of calls. */
  readonly operations: number;
  /** The earliest time of all events. */
  readonly startedAt: number;
  /** The acquisitions by resource and id. */
  readonly resources: ReadonlyMap<string, ReadonlyMap<string, RecordedAcquisition>>;
  /** The time at which each process crashed. */
  readonly crashes: ReadonlyMap<string, number>;
}

export function collectHistory(events: Iterable<HistoryEvent>): CollectedHistory {
  if (typeof events !== 'object' || events === null || typeof events[Symbol.iterator] !== 'function')
    throw new HistoryError(`checkHistory(): the history must be a list of events, not ${show(events)}.`);
  const collector = new Collector();
  if (events instanceof HistoryReader) {
    for (const event of events) collector.add(event, events.position);
  } else {
    let line = 0;
    for (const event of events) {
      const position = { line: (line += 1) };
      collector.add(checkEvent(event, position), position);
    }
  }
  return collector.finish();
}

class Collector {
  readonly #pending = new Map<string, Map<number, Writable<HistoryOperation>>>();
  readonly #resources = new Map<string, Map<string, RecordedAcquisition>>();
  readonly #crashes = new Map<string, number>();
  #operations = 0;
  #startedAt = Number.POSITIVE_INFINITY;

  /** Adds an event that was checked by itself, and checks its place in the history. */
  add(event: HistoryEvent, position: HistoryPosition): void {
    this.#startedAt = Math.min(this.#startedAt, event.time);
    if (this.#crashes.has(event.process))
      throw new HistoryError(`process ${show(event.process)} goes on after its crash.`, position);
    if (event.operation === 'crash') this.#crashes.set(event.process, event.time);
    else if (event.operation === 'loss') this.#noteLoss(event);
    else if (event.type === 'invoke') this.#begin(event, position);
    else this.#complete(event, position);
  }

  finish(): CollectedHistory {
    for (const operations of this.#pending.values()) for (const one of operations.values()) this.#file(one);
    return {
      operations: this.#operations,
      startedAt: this.#operations === 0 ? 0 : this.#startedAt,
      resources: this.#resources,
      crashes: this.#crashes,
    };
  }

  #begin(event: HistoryEvent, position: HistoryPosition): void {
    const { process, id = 0, operation } = event;
    let operations = this.#pending.get(process);
    if (operations === undefined) this.#pending.set(process, (operations = new Map()));
    if (operations.has(id))
      throw new HistoryError(`call ${id} of process ${show(process)} has begun already.`, position);
    this.#operations += 1;
    operations.set(id, {
      operation: operation as HistoryOperation['operation'],
      process,
      id,
      resource: event.resource as string,
      acquisitionId: event.acquisitionId,
      mode: event.mode === undefined ? EXCLUSIVE : shared(event.mode),
      token: undefined,
      invokedAt: event.time,
      completedAt: undefined,
      outcome: 'info',
    });
  }

  #complete(event: HistoryEvent, position: HistoryPosition): void {
    const { process, id = 0 } = event;
    const refuse = (problem: string): never => {
      throw new HistoryError(`call ${id} of process ${show(process)} ${problem}`, position);
    };
    const operations = this.#pending.get(process);
    const one = operations?.get(id);
    if (operations === undefined || one === undefined) return refuse('ends, and is not under way.');
    if (one.operation !== event.operation)
      refuse(`began as ${one.operation}, and ends as ${event.operation}.`);
    if (one.resource !== event.resource)
      refuse(`began for resource ${show(one.resource)}, and ends for ${show(event.resource)}.`);
    if (
      event.acquisitionId !== undefined &&
      (one.acquisitionId ??= event.acquisitionId) !== event.acquisitionId
    )
      refuse(`began for acquisition ${show(one.acquisitionId)}, and ends for ${show(event.acquisitionId)}.`);
    if (event.time < one.invokedAt) refuse('ends before it began.');
    one.completedAt = event.time;
    one.outcome = event.type as HistoryOperation['outcome'];
    if (event.token !== undefined) one.token = BigInt(event.token);
    operations.delete(id);
    this.#file(one);
  }

  #file(operation: HistoryOperation): void {
    if (operation.outcome === 'fail' || operation.acquisitionId === undefined) return;
    const acquisition = this.#acquisition(operation.resource, operation.acquisitionId);
    if (operation.operation === 'release') acquisition.releases.push(operation);
    else if (operation.outcome === 'ok') acquisition.entries.push(operation);
    else acquisition.unknownEntries.push(operation);
  }

  #noteLoss({ resource, acquisitionId, time, endedAt = time }: HistoryEvent): void {
    const acquisition = this.#acquisition(resource as string, acquisitionId as string);
    const { loss } = acquisition;
    if (loss === undefined || time < loss.notedAt) acquisition.loss = { notedAt: time, endedAt };
  }

  #acquisition(resource: string, acquisitionId: string): RecordedAcquisition {
    let acquisitions = this.#resources.get(resource);
    if (acquisitions === undefined) this.#resources.set(resource, (acquisitions = new Map()));
    let found = acquisitions.get(acquisitionId);
    if (found === undefined) {
      found = { acquisitionId, resource, entries: [], unknownEntries: [], releases: [], loss: undefined };
      acquisitions.set(acquisitionId, found);
    }
    return found;
  }
}

/** Gives one object for all exclusive modes: a million parsed ones would be kept otherwise. */
function shared(mode: HistoryMode): HistoryMode {
  return mode.kind === 'exclusive' ? EXCLUSIVE : mode;
}
