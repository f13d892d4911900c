import { testFaultScenarios } from '../src/fault-lab/scenarios.ts';
import Lab, { type LabOptions, SESSION_MS } from './lab.ts';

/** Sessions end in steps of the tick, and the machine is busy. */
const SLACK_MS = 2_000;

testFaultScenarios<LabOptions>({
  name: 'zookeeper',
  openLab: () => new Lab(),
  brief: { sessionTimeoutMs: SESSION_MS },
  lasting: { sessionTimeoutMs: 15_000 },
  keepsHolds: true,
  noticesSilence: true,
  lossReason: 'session-lost',
  reportedMs: SESSION_MS,
  freedMs: SESSION_MS + SLACK_MS,
  passedOverMs: SESSION_MS + SLACK_MS,
  slackMs: SLACK_MS,
});
