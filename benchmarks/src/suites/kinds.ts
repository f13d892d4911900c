import { contendersOf } from '../contenders/all.ts';
import { runSuite } from './command.ts';
import { type KindsReport, measureKinds, rowIds } from './kinds/measure.ts';
import { sectionsOf } from './kinds/tables.ts';
import { judge } from './kinds/targets.ts';
import { settingsFor } from './workload.ts';

/** `bench kinds`: gives the exit code. */
export async function kindsSuite(args: readonly string[]): Promise<number> {
  return await runSuite<KindsReport>(
    {
      name: 'kinds',
      rows: rowIds,
      contenders: () => contendersOf('kinds'),
      measure: (options, selection, say) => measureKinds(settingsFor(options), selection, say),
      sectionsOf,
      judge,
    },
    args,
  );
}
