import type { ServerName } from '../launcher/servers.mjs';

/** One line of the summary. */
export interface Step {
  /** `group` or `group:part`; `npm test -- group` runs all of a group. */
  readonly name: string;
  readonly about: string;
  /**
   * How the step shares the machine: a `timed` step, which mostly waits, runs beside two others; one that keeps all cores busy or measures
   * runs `alone`; a `static` one takes the processor time that these leave.
   */
  readonly kind: 'static' | 'timed' | 'alone';
  /** Servers without which the step cannot run at all. */
  readonly needs?: readonly ServerName[];
  /** Servers without which the step leaves a part out, and reports that. */
  readonly uses?: readonly ServerName[];
  /** What test-servers/install.mjs brings where it may: without it the step is reported as not run. */
  readonly installs?: string;
  /** The workspace packages, by their short names, without a change of which the step shows nothing new. Default: any change. */
  readonly concerns?: readonly string[];
  /** The step is left out of a run that does not name it. */
  readonly onlyWhenNamed?: boolean;
  run(context: StepContext): Promise<StepResult>;
}

export interface StepContext {
  /** The servers that cannot be started on this machine. */
  readonly missing: ReadonlySet<ServerName>;
  /** The user's arguments after a second `--`; passed to vitest. */
  readonly testArguments: readonly string[];
  /** Whether what failed beside others is repeated alone. */
  readonly repeats: boolean;
}

/** Who is told about the steps. */
export interface StepEvents {
  readonly started: (step: Pick<Step, 'name'>) => void;
  readonly ended: (report: StepReport) => void;
}

export interface StepFailure {
  /** In one line. */
  readonly says: string;
  /** Arguments for vitest that run this alone. */
  readonly repeat?: readonly string[];
}

export interface StepResult {
  readonly passed: number;
  readonly failed: number;
  readonly skipped?: number;
  /** Shown when something failed. */
  readonly output: string;
  /** The end of the summary repeats them, where they are found without the log before it. */
  readonly failures?: readonly StepFailure[];
  /** Shown always, below the step's line: a measured figure, for example. */
  readonly notes?: readonly string[];
  /**
   * Present when a busy machine may explain every failure: runs the failed tests once more. It is called when nothing else
   * runs.
   */
  readonly again?: () => Promise<StepResult>;
  /** The step cannot run on this machine; `output` says why. */
  readonly notRun?: boolean;
  /** The tests that failed beside others and passed alone: each is a bug to find, but no reason to stop a change. */
  readonly onlyAlone?: readonly string[];
}

export interface StepReport extends StepResult {
  readonly name: string;
  readonly seconds: number;
  /** For so long its commands kept processors busy; absent where nothing was measured. */
  readonly processorSeconds?: number;
  readonly outcome: 'ok' | 'failed' | 'not run';
}

/** The result of several checks that each passed or said why not. */
export function resultOf(
  checks: readonly { readonly name: string; readonly problem?: string | undefined }[],
  notes: readonly string[] = [],
): StepResult {
  const problems = checks.filter((check) => check.problem !== undefined);
  return {
    passed: checks.length - problems.length,
    failed: problems.length,
    output: problems.map(({ name, problem }) => `${name}:\n${problem}`).join('\n\n'),
    failures: problems.map(({ name, problem = '' }) => ({
      says: `${name}: ${problem.trim().split('\n')[0]}`,
    })),
    notes,
  };
}
