import type { AcquireRequest, Attempt, Call, Grant } from '@locks/core/backend';
import { onTestFinished, vi } from 'vitest';

/** Timers, wall and monotonic clock all stand still until the test moves them. */
export function useFakeClock(): void {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  });
  onTestFinished(() => {
    vi.restoreAllMocks();
    vi.useRealTimers();
  });
}

export function request(resource: string, acquisitionId: string, ttlMs = 1_000): AcquireRequest {
  return { resource, acquisitionId, mode: { kind: 'exclusive' }, ttlMs };
}

export const call: Call = { now: () => performance.now(), deadline: Number.POSITIVE_INFINITY };

export function granted(attempt: Attempt): Grant {
  if (attempt.status !== 'granted') throw new Error('the attempt was contended');
  return attempt.grant;
}
