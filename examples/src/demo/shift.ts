import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Store } from './backends.ts';
import { connect } from './connect.ts';
import { nextMessage } from './next-message.ts';
import { type Sold, sellOut } from './sell.ts';
import { Stock } from './stock.ts';
import type { WorkOrder } from './worker.ts';

const WORKER = fileURLToPath(new URL('./worker.ts', import.meta.url));

export interface ShiftOrder {
  readonly store: Store;
  readonly workers: number;
  readonly sales: number;
  readonly locked: boolean;
}

/** The result of selling out once. Times are milliseconds. */
export interface Run {
  readonly sold: number;
  readonly oversold: number;
  /** What the shelf says at the end. */
  readonly left: number;
  readonly soldBy: readonly number[];
  readonly ms: number;
  /** For how long each sale had waited, in rising order. */
  readonly waits: readonly number[];
}

/** Fills the shelf with `sales` units and lets all workers sell it out at once. */
export async function runShift(order: ShiftOrder): Promise<Run> {
  const stock = new Stock(order.store.directory);
  stock.write(order.sales);
  const inProcess = order.store.address.backend === 'memory';
  const { results, ms } = inProcess ? await sellHere(order, stock) : await sellInProcesses(order);
  const soldBy = results.map(({ units }) => units);
  const sold = soldBy.reduce((sum, units) => sum + units, 0);
  const waits = results.flatMap((result) => [...result.waits]).sort((a, b) => a - b);
  return { sold, oversold: sold - order.sales, left: stock.read(), soldBy, ms, waits };
}

/** The memory backend lives in one process: there the workers are its tasks. */
async function sellHere(
  { store, workers, locked }: ShiftOrder,
  stock: Stock,
): Promise<{ results: Sold[]; ms: number }> {
  await using connection = await connect(store.address);
  const startedAt = performance.now();
  const results = await Promise.all(
    Array.from({ length: workers }, () => sellOut(stock, locked ? connection.locks : undefined)),
  );
  return { results, ms: performance.now() - startedAt };
}

async function sellInProcesses({
  store,
  workers,
  locked,
}: ShiftOrder): Promise<{ results: Sold[]; ms: number }> {
  const order: WorkOrder = { address: store.address, directory: store.directory, locked };
  const crew = Array.from({ length: workers }, () => fork(WORKER, [JSON.stringify(order)]));
  const gone = Promise.all(crew.map((worker) => once(worker, 'exit')));
  try {
    await Promise.all(crew.map((worker) => nextMessage(worker)));
    const startedAt = performance.now();
    const results = crew.map((worker) => nextMessage(worker) as Promise<Sold>);
    for (const worker of crew) worker.send('sell');
    const sold = await Promise.all(results);
    return { results: sold, ms: performance.now() - startedAt };
  } finally {
    for (const worker of crew) if (worker.connected) worker.disconnect();
    // They leave their connections in good order, so the store must outlive them.
    await gone;
  }
}
