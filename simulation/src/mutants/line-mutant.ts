import type { SourceChange } from '../process/source-change.ts';
import type { BackendKind } from '../workload/plan.ts';

/** One line of the sources, removed or changed. */
export interface LineMutant {
  readonly backend: BackendKind;
  readonly change: SourceChange;
  /** What goes wrong. */
  readonly says: string;
  /** Why no schedule can find it: nothing that a user or the store sees depends on the line. */
  readonly unseen?: string;
}

/** A change in one file: what stands there, what takes its place, what goes wrong, and why nobody would see it. */
export type LineChange = readonly [from: string, to: string, says: string, unseen?: string];

/** The mutants of one file. */
export function mutantsOf(
  backend: BackendKind,
  file: string,
  changes: readonly LineChange[],
): readonly LineMutant[] {
  return changes.map(([from, to, says, unseen]) => ({
    backend,
    change: { file, from, to },
    says,
    ...(unseen !== undefined && { unseen }),
  }));
}
