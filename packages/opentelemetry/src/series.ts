import type { Attributes, ObservableResult } from '@opentelemetry/api';
import { attributesOf, groupWith, type GroupOf, type Measured } from './attributes.ts';

/** The measurements of equal attributes. The attributes are made once: most of a measurement's cost is in them. */
export interface Series {
  readonly attributes: Attributes;
  readonly acquired: Attributes;
  /** How many leases this process holds. */
  held: number;
  /** How many acquires of this process wait. */
  waiting: number;
}

/** The series of all locks, found by the backend, the kind of the mode, and the group. */
export class AllSeries {
  readonly #groupOf: GroupOf;
  readonly #series = new Map<string, Map<string, Map<string | undefined, Series>>>();

  constructor(groupOf: GroupOf | undefined) {
    this.#groupOf = groupWith(groupOf);
  }

  of({ resource, backend, mode }: Measured): Series {
    const group = this.#groupOf(resource);
    const found = this.#series.get(backend)?.get(mode.kind)?.get(group);
    if (found !== undefined) return found;
    const attributes = attributesOf(backend, mode.kind, group);
    const series = {
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
    getOrAdd(ofBackend, mode.kind, () => new Map<string | undefined, Series>()).set(group, series);
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
