import { LocalWaiters } from '@locks/core/backend';

// Loaded before the program of a RemoteProcess, which then has no timer of its waiters: no poll and no heartbeat.
LocalWaiters.prototype.pollWithin = () => undefined;
