import type { Testbed } from '../../conduct/testbed.ts';
import { median } from '../../measure/quantiles.ts';
import type { CoreResult } from './result.ts';
import type { Settings } from './settings.ts';

const WARM_UP_ROUNDS = 2;

/** Core's own processor time, without any server. */
export async function measureCore(testbed: Testbed, settings: Settings): Promise<CoreResult> {
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
