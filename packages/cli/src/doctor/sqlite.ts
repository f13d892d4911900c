import { existsSync, statfsSync } from 'node:fs';
import { dirname } from 'node:path';
import { sqlitePath } from '../store-url.ts';
import { type ExaminedStore, trialFindings, type TrialReading } from './examination.ts';
import { type Diagnosis, error, type Finding, found, warning } from './finding.ts';

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
/** Minimum free space in bytes: more than thousands of locks and the log need. */
const LEAST_FREE = 16 * 1024 * 1024;

/** The finding's name and advice, by the code of the failure. */
const FAILURES: Readonly<Record<string, readonly [name: string, toDo: string]>> = {
  FULL: ['disk-full', 'free some space on that disk, or raise the quota'],
  READ_ONLY: ['read-only', 'give all users of the file the right to write it and its folder'],
  CANNOT_OPEN: ['cannot-open', 'do what the message says, or choose another path'],
  FOREIGN_FILE: ['foreign-file', 'choose another path'],
  NEWER_SCHEMA: ['schema-newer', 'upgrade @locks/sqlite in all programs, or choose another path'],
  CORRUPT: ['corrupt', 'stop all users of the file, delete it, and start them again'],
  TWO_MACHINES: ['two-machines', 'give each machine a file of its own, or use a store that has a server'],
  BUSY: ['busy', 'find out who keeps a transaction open on the file'],
};

const READING: TrialReading = {
  failure({ message, codes }) {
    // The step waits for the file until the caller's time is over.
    const busy = message.includes('no answer within') ? ['BUSY'] : [];
    const known = [...codes, ...busy].map((code) => FAILURES[code]).find((failure) => failure !== undefined);
    if (known === undefined) return undefined;
    const [name, toDo] = known;
    return { id: `sqlite/${name}`, severity: 'error', toDo };
  },
};

export async function examineSqlite({ url, locks }: ExaminedStore): Promise<Diagnosis> {
  const path = sqlitePath(url);
  const folder = dirname(path);
  const version = process.versions['sqlite'];
  if (!existsSync(folder)) {
    const missing = error('sqlite/cannot-open', `there is no folder ${folder}`, 'make it');
    return { store: 'sqlite', version, findings: [missing] };
  }
  const { type, bavail, bsize } = statfsSync(folder);
  const findings = [
    ...found(networkFinding(folder, type), spaceFinding(folder, bavail * bsize)),
    // A trial would create a missing file.
    ...(existsSync(path) ? await trialFindings('sqlite', locks, READING) : []),
  ];
  return { store: 'sqlite', version, findings };
}

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

function spaceFinding(folder: string, free: number): Finding | undefined {
  if (free >= LEAST_FREE) return undefined;
  return warning(
    'sqlite/disk-space',
    `the disk of ${folder} has ${free} bytes left: when it is full, locks are refused, and releases too`,
    'free some space',
  );
}
