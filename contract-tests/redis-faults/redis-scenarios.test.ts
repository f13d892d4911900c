import { libraries } from '../src/harnesses/redis/open-client.ts';
import { testFaultScenarios } from '../src/fault-lab/scenarios.ts';
import Lab, { type LabOptions } from './lab.ts';

const TTL_MS = 2_000;
/** By the defaults of the backend. */
const ALIVE_MS = 3_000;
const SLACK_MS = 700;

for (const library of libraries) {
  testFaultScenarios<LabOptions>({
    name: library,
    openLab: () => new Lab(library),
    brief: { ttlMs: TTL_MS },
    lasting: { ttlMs: 20_000 },
    // The servers of these tests keep nothing on disk.
    keepsHolds: false,
    noticesSilence: false,
    lossReason: 'unconfirmed',
    reportedMs: TTL_MS + SLACK_MS,
    // Who waits looks at the moment at which a hold can end.
    freedMs: TTL_MS + SLACK_MS,
    // One that was not yet listening counts as alive for three checks; another may have been handed the lock for its ttl.
    passedOverMs: ALIVE_MS + SLACK_MS,
    slackMs: SLACK_MS,
  });
}
