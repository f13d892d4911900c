/** The module of a renewal thread: makes the backend of the harness that the query of its URL names. */
import type { LockBackend } from '../../src/backend/types.ts';
import { delegate } from '../delegate.ts';
import { harnessIn } from '../harness.ts';

export default async function makeBackend(): Promise<LockBackend> {
  const query = new URL(import.meta.url).searchParams;
  const module = query.get('harness') as string;
  const harness = harnessIn((await import(module)) as object);
  if (harness === undefined) throw new Error(`${module} exports no harness.`);
  const backend = await harness.createBackend();
  return query.has('endsAtRenewal') ? delegate(backend, { renew: () => process.exit(1) }) : backend;
}
