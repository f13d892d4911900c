import type { Testbed } from '../conduct/testbed.ts';
import { median } from '../measure/quantiles.ts';
import type { Section } from '../report/report.ts';

export interface CoreResult {
  readonly withCoreMicros: number;
  readonly bareBackendMicros: number;
  /** The median of the differences. */
  readonly coreMicros: number;
}

const WARM_UP_ROUNDS = 2;

/** Core's own processor time, without any server. */
export async function measureCore(
  testbed: Testbed,
  settings: { readonly rounds: number; readonly corePairs: number },
): Promise<CoreResult> {
  const worker = testbed.startWorker();
  try {
    for (let round = 0; round < WARM_UP_ROUNDS; round += 1) await worker.call.coreCost(settings.corePairs);
    const rounds = [];
    for (let round = 0; round < settings.rounds; round += 1) {
      rounds.push(await worker.call.coreCost(settings.corePairs));
    }
    return {
      withCoreMicros: median(rounds.map(({ withCore }) => withCore)),
      bareBackendMicros: median(rounds.map(({ bareBackend }) => bareBackend)),
      coreMicros: median(rounds.map(({ withCore, bareBackend }) => withCore - bareBackend)),
    };
  } finally {
    await testbed.end(worker);
  }
}

export function coreSection({ withCoreMicros, bareBackendMicros, coreMicros }: CoreResult): Section {
  return {
    title: 'Core: processor time of one uncontended acquire and release, memory backend',
    table: {
      heading: ['', 'µs'],
      lines: [
        ['with core', withCoreMicros.toFixed(2)],
        ['bare backend', bareBackendMicros.toFixed(2)],
        ['core itself', coreMicros.toFixed(2)],
      ],
    },
  };
}
