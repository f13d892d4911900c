import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { withServers } from '../../checks/runtimes.ts';
import { freshProject } from './fresh-projects.ts';
import type { Registry } from './registry.ts';
import type { RehearsalOptions } from './rehearsal-options.ts';
import type { StepList } from './step-list.ts';
import { besideEachOther, type UpgradeStore, upgradeStores } from './upgrade.ts';

/** The version before and the new one on one store each, with leases held by either. */
export async function upgradeChecks(
  steps: StepList,
  registry: Registry,
  newProject: string,
  { before, version }: { readonly before: string; readonly version: string },
  folder: string,
  { quick, missing }: RehearsalOptions,
): Promise<void> {
  const oldProject = await steps.run('install the version before', async () => {
    const project = await freshProject('npm', registry, before, join(folder, 'projects/before'));
    return [project.folder, before];
  });
  const versions = [
    { folder: oldProject, version: before },
    { folder: newProject, version },
  ] as const;
  const work = join(folder, 'upgrade');
  mkdirSync(work);
  const stores = Object.entries(upgradeStores) as [UpgradeStore, (typeof upgradeStores)[UpgradeStore]][];
  const wanted = stores.filter(([store]) => !quick || store === 'sqlite' || store === 'ioredis');
  for (const [store, server] of wanted) {
    const name = `upgrade on ${store}`;
    if (server !== undefined && missing.has(server)) {
      steps.absent(name, `no ${server} can be started here`);
      continue;
    }
    await steps
      .run(name, async () => {
        const sqlite = { LOCKS_SQLITE_FILE: join(work, 'locks.sqlite') };
        await withServers(server === undefined ? [] : [server], (env) =>
          besideEachOther(store, versions, { ...env, ...sqlite }, work),
        );
        return [undefined, `${before} beside ${version}: leases, queue, tokens, modes, killed holders`];
      })
      .catch(() => undefined);
  }
}
