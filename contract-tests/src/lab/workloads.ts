import type { HistoryMode } from '@locks/history';

/** What the workers of the lab do with locks. All workloads of a run go on at the same time, each on resources of its own. */
export const WORKLOADS = ['mutex', 'lock-set', 'readers-writer', 'permits', 'all'] as const;
export type Workload = (typeof WORKLOADS)[number];

export const PERMITS = 3;

/** How many loops of a worker do each workload. */
export const LOOPS = 2;

/** The resources of a workload. */
export const RESOURCES: Readonly<Record<Workload, readonly string[]>> = {
  mutex: ['mutex 1', 'mutex 2'],
  'lock-set': ['lock-set'],
  'readers-writer': ['readers-writer'],
  permits: ['permits'],
  all: ['all 1', 'all 2', 'all 3'],
};

const KINDS: Readonly<Record<Workload, HistoryMode['kind']>> = {
  mutex: 'exclusive',
  'lock-set': 'exclusive',
  'readers-writer': 'shared',
  permits: 'permit',
  all: 'exclusive',
};

/** The workloads that a backend can do, by the modes that it declares. */
export function workloadsOf(modes: readonly HistoryMode['kind'][]): Workload[] {
  return WORKLOADS.filter((workload) => modes.includes(KINDS[workload]));
}
