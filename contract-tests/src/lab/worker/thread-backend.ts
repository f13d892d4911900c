/** The module of the renewal thread of a worker: makes the same backend, by the setup in the query of its URL. */
import type { LockBackend } from '@locks/core/backend';
import type { FaultLab } from '../../fault-lab/fault-lab.ts';
import type { LabWorkerSetup } from './worker-commands.ts';

export default async function makeBackend(): Promise<LockBackend> {
  const query = new URL(import.meta.url).searchParams;
  const { module, address, options } = JSON.parse(query.get('setup') ?? '') as LabWorkerSetup;
  const { default: Lab } = (await import(module)) as { default: new () => FaultLab<object> };
  const backend = await new Lab().backend?.(address as never, options);
  if (backend === undefined) throw new Error(`${module} makes no backend.`);
  return backend;
}
