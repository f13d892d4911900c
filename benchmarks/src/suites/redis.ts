import { contendersOf } from '../contenders/all.ts';
import { runSuite } from './command.ts';
import type { Report } from './redis/result.ts';
import { settingsFor } from './redis/settings.ts';
import { measureRedis, rowIds } from './redis/suite.ts';
import { sectionsOf } from './redis/tables.ts';
import { judge } from './redis/targets.ts';

/** `bench redis`: gives the exit code. */
export async function redisSuite(args: readonly string[]): Promise<number> {
  return await runSuite<Report>(
    {
      name: 'redis',
      rows: rowIds,
      contenders: () => contendersOf('redis'),
      measure: (options, selection, say) => measureRedis(settingsFor(options), selection, say),
      sectionsOf,
      judge,
    },
    args,
  );
}
