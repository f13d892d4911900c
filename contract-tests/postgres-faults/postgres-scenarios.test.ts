import { testFaultScenarios } from '../src/fault-lab/scenarios.ts';
import AdvisoryLab, {
  CLAIM_MS,
  type LabOptions as AdvisoryOptions,
  SESSION_MS,
  SLACK_MS as ADVISORY_SLACK_MS,
} from './advisory-lab.ts';
import LeaseLab, { type LabOptions as LeaseOptions, SLACK_MS } from './lease-lab.ts';

/** As docs/backends/postgres.md has them. */
const CHECK_MS = 1_000;
/** Where a waiter dies before its listener is known: its heartbeat, and the check of the next one. */
const SILENCE_MS = 3_000 + CHECK_MS;
const TTL_MS = 1_500;

testFaultScenarios<LeaseOptions>({
  name: 'postgres-lease',
  openLab: () => new LeaseLab(),
  brief: { ttlMs: TTL_MS },
  lasting: { ttlMs: 20_000 },
  poolOfOne: { ttlMs: 4_000, pool: { max: 1, connectionTimeoutMillis: 0 } },
  keepsHolds: true,
  noticesSilence: true,
  lossReason: 'unconfirmed',
  reportedMs: TTL_MS + SLACK_MS,
  freedMs: TTL_MS + CHECK_MS + SLACK_MS,
  passedOverMs: SILENCE_MS + SLACK_MS,
  slackMs: SLACK_MS,
});

testFaultScenarios<AdvisoryOptions>({
  name: 'postgres-advisory',
  openLab: () => new AdvisoryLab(),
  brief: {},
  lasting: { sessionTimeoutMs: 15_000 },
  keepsHolds: false,
  endsWithConnection: true,
  noticesSilence: true,
  lossReason: 'session-lost',
  reportedMs: (2 / 3) * SESSION_MS + ADVISORY_SLACK_MS,
  freedMs: SESSION_MS + ADVISORY_SLACK_MS,
  passedOverMs: CLAIM_MS + ADVISORY_SLACK_MS,
  slackMs: ADVISORY_SLACK_MS,
});
