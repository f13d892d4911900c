/** A candidate in a process of its own: takes part in the election until it is told to stop, and reports what it leads. */
import { election } from '@locks/leader';
import type { StoreAddress } from '../backends.ts';
import { connect } from '../connect.ts';

/** A candidate, as plain data for its process. */
export interface CandidateOrder {
  readonly address: StoreAddress;
  readonly label: string;
  readonly ttlMs: number;
}

/** What a candidate reports. Times are milliseconds of the machine's monotonic clock, the same in all processes. */
export type CandidateReport =
  | { readonly kind: 'leads'; readonly at: number; readonly token: string | undefined }
  | { readonly kind: 'ended'; readonly at: number };

const order = JSON.parse(process.argv[2] as string) as CandidateOrder;
const stopping = new AbortController();
let resign = (): void => {};
const report = (message: CandidateReport): unknown => process.connected && process.send?.(message);
const now = (): number => Number(process.hrtime.bigint()) / 1e6;

// Without the parent nobody reads the reports.
process.on('disconnect', () => process.exit());
process.on('message', (message: 'resign' | 'stop') => (message === 'stop' ? stopping.abort() : resign()));

await using connection = await connect(order.address);
await election(connection.locks, 'scheduler').lead(
  async (leadership) => {
    const { signal, fencingToken } = leadership;
    resign = () => leadership.resign();
    report({
      kind: 'leads',
      at: now(),
      token: fencingToken === undefined ? undefined : String(fencingToken),
    });
    await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    report({ kind: 'ended', at: now() });
  },
  {
    signal: stopping.signal,
    ttlMs: order.ttlMs,
    label: order.label,
    backoff: { firstMs: 200 },
    // A moment later: when the demo is interrupted its files go first, and then this process.
    onError: (error) => setTimeout(() => console.error(error), 100),
  },
);
process.removeAllListeners('disconnect');
if (process.connected) process.disconnect();
