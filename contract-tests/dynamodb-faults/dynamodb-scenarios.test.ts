import { testFaultScenarios } from '../src/fault-lab/scenarios.ts';
import Lab, { WAITER_TTL_MS } from './lab.ts';

const TTL_MS = 1_200;
/** A silent process is passed over after its waiters' ttl, at the next check of another one. */
const CHECK_MS = 1_500;
const SLACK_MS = 1_500;

testFaultScenarios({
  name: 'dynamodb',
  openLab: () => new Lab(),
  brief: { ttlMs: TTL_MS },
  lasting: { ttlMs: 20_000 },
  keepsHolds: true,
  noticesSilence: false,
  lossReason: 'unconfirmed',
  reportedMs: TTL_MS + SLACK_MS,
  freedMs: TTL_MS + CHECK_MS + SLACK_MS,
  passedOverMs: WAITER_TTL_MS + CHECK_MS + SLACK_MS,
  slackMs: SLACK_MS,
});
