import { contendersOf } from '../contenders/all.ts';
import type { Store } from '../stores/store.ts';
import { runSuite } from './command.ts';
import { measureStore, rowIds, type StoreReport } from './stores/measure.ts';
import { sectionsOf } from './stores/tables.ts';
import { judge } from './stores/targets.ts';
import { settingsFor } from './workload.ts';

/** `bench postgres`, `mysql`, `zookeeper`, `etcd`: gives the exit code. */
export async function storeSuite(store: Store, args: readonly string[]): Promise<number> {
  return await runSuite<StoreReport>(
    {
      name: store.id,
      rows: rowIds,
      contenders: () => contendersOf(store.id),
      measure: (options, selection, say) => measureStore(store, settingsFor(options), selection, say),
      sectionsOf,
      judge,
    },
    args,
  );
}
