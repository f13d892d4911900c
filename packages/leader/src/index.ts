export { type Election, election } from './election.ts';
export { type LeadOptions } from './lead.ts';
export { type BackoffOptions } from './back-off.ts';
export { type BaseLeadership, type Leadership } from './leadership.ts';
export { type LeaderInfo, type WatchLeaderOptions } from './leader.ts';
