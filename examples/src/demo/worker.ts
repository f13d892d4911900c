/** One worker in a process of its own: connects, reports that it is ready, sells on a message, reports what it sold. */
import type { StoreAddress } from './backends.ts';
import { connect } from './connect.ts';
import { sellOut } from './sell.ts';
import { Stock } from './stock.ts';

export interface WorkOrder {
  readonly address: StoreAddress;
  readonly directory: string;
  readonly locked: boolean;
}

const order = JSON.parse(process.argv[2] as string) as WorkOrder;
// The parent is gone: nobody reads the result.
process.on('disconnect', () => process.exit());

await using connection = order.locked ? await connect(order.address) : undefined;
process.send?.('ready');
await new Promise((resolve) => process.once('message', resolve));
const sold = await sellOut(new Stock(order.directory), connection?.locks);
process.removeAllListeners('disconnect');
await new Promise((resolve) => process.send?.(sold, resolve));
if (process.connected) process.disconnect();
