import type { LockMode } from '@locks/core';
import type { Attributes, ObservableResult } from '@opentelemetry/api';
import { attributesOf, groupWith, type GroupOf, type Measured } from './attributes.ts';

/** The measurements of equal attributes. The attributes are made once: most of a measurement's cost is in them. */
export interface Series {
  readonly backend: string;
  readonly mode: LockMode['kind'];
  readonly group: string | undefined;
  readonly attributes: Attributes;
  readonly acquired: Attributes;
  /** The number of leases that this process holds. */
  held: number;
  /** The number of acquires of this process that wait. */
  waiting: number;
}

/** The series of all locks, found by the backend, the kind of the mode, and the group. */
export class AllSeries {
  readonly #groupOf: GroupOf;
  readonly #series = new Map<string, Map<string, Map<string | undefined, Series>>>();
  /** The series of the last measurement, which is mostly that of the next one too. */
  #last: Series | undefined;

  constructor(groupOf: GroupOf | undefined) {
    this.#groupOf = groupWith(groupOf);
  }

  of({ name, backend, mode }: Measured): Series {
    const group = this.#groupOf(name);
    const last = this.#last;
    if (last?.backend === backend && last.mode === mode.kind && last.group === group) return last;
    const series =
      this.#series.get(backend)?.get(mode.kind)?.get(group) ?? this.#added(backend, mode.kind, group);
    this.#last = series;
    return series;
  }

  #added(backend: string, mode: LockMode['kind'], group: string | undefined): Series {
    const attributes = attributesOf(backend, mode, group);
    const series = {
      backend,
      mode,
      group,
      attributes,
      acquired: { ...attributes, 'lock.outcome': 'acquired' },
      held: 0,
      waiting: 0,
    };
    const ofBackend = getOrAdd(
      this.#series,
      backend,
      () => new Map<string, Map<string | undefined, Series>>(),
    );
    getOrAdd(ofBackend, mode, () => new Map<string | undefined, Series>()).set(group, series);
    return series;
  }

  /** Observes a count of every series, also where it is 0 now. */
  observe(result: ObservableResult, count: 'held' | 'waiting'): void {
    for (const ofBackend of this.#series.values())
      for (const ofMode of ofBackend.values())
        for (const series of ofMode.values()) result.observe(series[count], series.attributes);
  }
}

function getOrAdd<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}
