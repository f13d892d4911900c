import { testFaultScenarios } from '../src/fault-lab/scenarios.ts';
import Lab, { type LabOptions } from './lab.ts';

/** The server looks for ended leases twice a second, and counts in whole seconds. */
const EXPIRY_MS = 1_500;
const SLACK_MS = 1_500;
const TTL_MS = 2_000;
/** The default of `waiterTtlMs`. */
const WAITER_TTL_MS = 3_000;

testFaultScenarios<LabOptions>({
  name: 'etcd',
  openLab: () => new Lab(),
  brief: { ttlMs: TTL_MS },
  lasting: { ttlMs: 20_000 },
  keepsHolds: true,
  noticesSilence: false,
  lossReason: 'unconfirmed',
  reportedMs: TTL_MS + SLACK_MS,
  freedMs: TTL_MS + EXPIRY_MS + SLACK_MS,
  passedOverMs: WAITER_TTL_MS + EXPIRY_MS + SLACK_MS,
  slackMs: SLACK_MS,
});
