export { lead, type LeadOptions } from './lead.ts';
export { type BackoffOptions } from './back-off.ts';
export { type BaseLeadership, type Leadership } from './leadership.ts';
export { leader, type LeaderInfo, watch, type WatchLeaderOptions } from './leader.ts';
