import type { Store } from './backends.ts';
import { printReport } from './report.ts';
import type { Settings } from './settings.ts';
import { type Run, runShift } from './shift.ts';

/** Sells the stock without a lock, then with one, and shows what it costs not to have it. */
export async function playStock(
  store: Store,
  { backend, workers, sales, json }: Settings & { readonly act: 'stock' },
): Promise<boolean> {
  const unlocked = await runShift({ store, workers, sales, locked: false });
  const locked = await runShift({ store, workers, sales, locked: true });
  const ok = locked.oversold === 0 && locked.left === 0 && honest(unlocked, workers);
  printReport({ backend, place: store.place, workers, sales, unlocked, locked, ok }, json);
  return ok;
}

/** The unlocked run counts only if every worker sold something and no unit of stock was left. */
function honest(run: Run, workers: number): boolean {
  return run.soldBy.length === workers && run.soldBy.every((sold) => sold > 0) && run.left === 0;
}
