import type { SourceChange } from '../src/process/source-change.ts';
import type { BackendKind, PlanVariant } from '../src/workload/plan.ts';

/** An error in a line on which a promise hangs. */
export interface PlantedError {
  readonly what: string;
  readonly backend: BackendKind;
  readonly change: SourceChange;
  /** The first schedule: of what schedule 1 and the next ones do not find, the one that did. */
  readonly seed: number;
  /** Found in these runs. @defaultValue those that the seed draws */
  readonly variant?: PlanVariant;
}
