import type { Counted } from '../../measure/monitor-tap.ts';
import type { CountedRequests } from './result.ts';

export function countedOf(
  { sent, total, alsoInScripts }: Counted,
  operations: number,
  elapsedMs: number,
): CountedRequests {
  return {
    perOperation: total / operations,
    operations,
    requests: total,
    elapsedMs,
    byCommand: Object.fromEntries(sent),
    alsoInScripts,
  };
}
