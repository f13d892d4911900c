import type { Contender } from '../contenders/contender.ts';
import { codeOf } from '../measure/code.ts';
import { describeMachine, versionsOf } from '../measure/machine.ts';
import { Progress } from '../measure/progress.ts';
import { reportHead, type ReportHead } from '../report/head.ts';
import type { Checkpoint } from './checkpoint.ts';
import type { Testbed } from './testbed.ts';

/** One run of a suite: on which machine, with which versions, and what failed. */
export class Run {
  readonly progress: Progress;
  readonly #machine = describeMachine();
  readonly #versions: Record<string, string>;
  #placement = '';

  constructor(say: (text: string) => void, checkpoint?: Checkpoint) {
    this.progress = new Progress(say, checkpoint);
    this.#versions = checkpoint?.versions ?? {};
  }

  /** Opens a server for `work`, and stops it after that. */
  async on<T>(
    open: () => Promise<Testbed>,
    contenders: readonly Pick<Contender, 'packages'>[],
    work: (testbed: Testbed) => Promise<T>,
  ): Promise<T> {
    await using testbed = await open();
    if (this.#placement !== testbed.placement) this.progress.report(testbed.placement);
    this.#placement = testbed.placement;
    const packages = contenders.flatMap((contender) => contender.packages);
    Object.assign(this.#versions, testbed.server.versions, versionsOf(packages));
    return await work(testbed);
  }

  report<S extends string, F extends Pick<ReportHead, 'settings'>>(
    suite: S,
    figures: F,
  ): ReportHead & F & { readonly suite: S } {
    this.progress.report('done');
    const head = reportHead(suite, this.#machine, this.#placement, this.#versions);
    const { failures, seconds } = this.progress;
    return { ...head, code: codeOf(Object.keys(this.#versions)), failures, seconds, ...figures };
  }
}
