import { error, type Finding } from '@locks/core/doctor';
import { networkFileSystem } from '@locks/core/machine';

/** @param type - the type of the file system, as `statfs` gives it */
export function networkFinding(folder: string, type: number): Finding | undefined {
  const name = networkFileSystem(type);
  if (name === undefined) return undefined;
  return error(
    'sqlite/network-file-system',
    `${folder} is on ${name}: its file locks are unreliable, and clocks of two machines have nothing in common`,
    'put the file on a local disk, or use a store that has a server',
  );
}
