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

/**
 * The name of a file system over a network; `undefined` for any other, and where the system does not number them.
 *
 * @param type - the type of the file system, as `statfs` gives it
 */
export function networkFileSystem(type: number): string | undefined {
  return process.platform === 'linux' ? NETWORK_FILE_SYSTEMS[type] : undefined;
}
