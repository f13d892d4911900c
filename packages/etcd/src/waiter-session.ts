import type { ICompare, IRequestOp } from 'etcd3';
import { modifiedAt, read } from './conditions.ts';

/** The lease that all queue entries of this process are attached to. */
export interface EtcdWaiterSession {
  readonly lease: string;
  readonly marker: Buffer;
  /** The revision at which the marker was last written; every request to queue names it. */
  revision: number;
}

/** The condition that the session lives and no request of it was refused since. */
export function sessionStands({ marker, revision }: EtcdWaiterSession): ICompare {
  return modifiedAt(marker, revision);
}

export function readMarker({ marker }: EtcdWaiterSession): IRequestOp {
  return read({ key: marker });
}
