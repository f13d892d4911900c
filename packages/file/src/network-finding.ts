import { error, type Finding } from '@locks/core/doctor';
import { networkFileSystem } from '@locks/core/machine';

/** @param type - the type of the file system, as `statfs` gives it */
export function networkFinding(folder: string, type: number): Finding | undefined {
  const name = networkFileSystem(type);
  if (name === undefined) return undefined;
  return error(
    'file/network-file-system',
    `${folder} is on ${name}: clocks of two machines have nothing in common`,
    'put the folder on a local disk, or use a store that has a server',
  );
}
