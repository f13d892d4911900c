import type { RenewalStatus } from '../backend/types.ts';

/** Whether a backend's `validForMs` can be counted with. */
function isDuration(value: unknown = 0): boolean {
  return typeof value === 'number' && !Number.isNaN(value);
}

/** The status of one item in the answer to a renewal. An answer that is no status means that nothing is known. */
export function renewalStatusOf(answer: unknown, index: number): RenewalStatus {
  const renewalStatus = Array.isArray(answer)
    ? (answer[index] as Partial<RenewalStatus> | null | undefined)
    : undefined;
  switch (renewalStatus?.status) {
    case 'lost':
    case 'unknown':
      return renewalStatus as RenewalStatus;
    case 'held':
      if (isDuration(renewalStatus.validForMs)) return renewalStatus as RenewalStatus;
      break;
    default:
      renewalStatus?.status satisfies undefined;
  }
  return {
    status: 'unknown',
    error: new Error('the backend broke its contract: it gave no status for the lease'),
  };
}
