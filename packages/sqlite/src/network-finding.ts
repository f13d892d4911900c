import { error, type Finding } from '@locks/core/doctor';

/** File systems over a network, by the number that `statfs` gives on Linux. */
const NETWORK_FILE_SYSTEMS: Readonly<Record<number, string>> = {
  0x6969: 'NFS',
  0x517b: 'SMB',
  0xfe534d42: 'SMB2',
  0xff534d42: 'CIFS',
  0x01021997: '9p',
  0x00c36400: 'Ceph',
  0x0bd00bd0: 'Lustre',
  0x5346414f: 'AFS',
};

/** @param type - the type of the file system, as `statfs` gives it */
export function networkFinding(folder: string, type: number): Finding | undefined {
  const name = NETWORK_FILE_SYSTEMS[type];
  if (name === undefined || process.platform !== 'linux') return undefined;
  return error(
    'sqlite/network-file-system',
    `${folder} is on ${name}: its file locks are unreliable, and clocks of two machines have nothing in common`,
    'put the file on a local disk, or use a store that has a server',
  );
}
