import type { NetworkOptions } from '../network/link.ts';
import type { RecordPlan } from '../record/record-plan.ts';
import type { Emphasis } from './emphasis.ts';
import type { BackendKind, FaultPlan, Plan, StoreFaultPlan } from './plan.ts';

/** What a run is made of where it has a theme; the rest is drawn as in every run. */
export interface Theme {
  readonly backends: readonly BackendKind[];
  /** How often it is drawn, beside the others. @defaultValue 1 */
  readonly weight?: number;
  readonly emphasis: Partial<Emphasis>;
  /** Every process uses cohorts. */
  readonly hasCohorts?: true;
  /** In place of the network that was drawn. */
  readonly network?: Partial<NetworkOptions>;
  /** Empty: there are none. `undefined`: they are drawn as in every run. */
  readonly faultKinds?: readonly FaultPlan['kind'][];
  readonly storeFaultKinds?: readonly StoreFaultPlan['kind'][];
  /** What a store of records is like. */
  readonly record?: Partial<RecordPlan>;
  readonly plan?: Partial<
    Pick<
      Plan,
      | 'maxPollMs'
      | 'knownScripts'
      | 'refines'
      | 'looksAtLeases'
      | 'connectionLimit'
      | 'requestTimeoutMs'
      | 'cohort'
    >
  >;
}
