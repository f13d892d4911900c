import type { Standing } from '../backend/types.ts';

/** Whether a backend's `validForMs` can be counted with. */
function isDuration(value: unknown = 0): boolean {
  return typeof value === 'number' && !Number.isNaN(value);
}

/** The standing of one item in the answer to a renewal. An answer that is no standing means that nothing is known. */
export function standingOf(answer: unknown, index: number): Standing {
  const standing = Array.isArray(answer)
    ? (answer[index] as Partial<Standing> | null | undefined)
    : undefined;
  switch (standing?.status) {
    case 'lost':
    case 'unknown':
      return standing as Standing;
    case 'held':
      if (isDuration(standing.validForMs)) return standing as Standing;
      break;
    default:
  }
  return {
    status: 'unknown',
    error: new Error('the backend broke its contract: it gave no standing for the lease'),
  };
}
