import type { TestbedServer } from '../conduct/testbed.ts';
import type { StoreId } from '../contenders/contender.ts';

/** One kind of server, for the suites that work alike on all of them. */
export interface Store {
  readonly id: Exclude<StoreId, 'kinds' | 'cohorts'>;
  /** How the operations are counted, for the reader. */
  readonly counting: string;
  start(): Promise<TestbedServer>;
}
