import type { BackendCapabilities } from '@locks/core/backend';
import type { LeftBehind } from '../worker/worker-commands.ts';
import type { Disturbances } from './disturbances.ts';
import type { RunRecord } from './run-record.ts';

export interface JudgedRun {
  readonly record: RunRecord;
  readonly disturbances: Disturbances;
  readonly capabilities: BackendCapabilities;
  /** Whether the locks are those of another library, which promises less. */
  readonly isOther: boolean;
  readonly prefix: string;
  /** How long a hold lasts after its client was last heard of. */
  readonly holdMs: number;
  /** How late store, machine and timers may be. */
  readonly slackMs: number;
  /** Workers whose calls did not end. */
  readonly late: readonly string[];
  readonly leftBehind: readonly LeftBehind[];
}

/** What the tests of one promise showed. */
export interface Findings {
  readonly tested: number;
  readonly breaches: readonly string[];
  readonly measured?: string;
}
