import type { RecordVersion, StoredRecord } from '@locks/record-protocol';
import { ForeignLeaseError } from './kube-error.ts';
import { leaseName } from './lease-name.ts';

/** The key as it is, for people, and against a Lease of something else. */
const KEY = 'locks/key';
/** The value, where it is text. */
const TEXT = 'locks/value';
/** The value in base64, where it is not. */
const BINARY = 'locks/value-base64';
/** What the records of a watch have in common. */
export const AREA = 'locks/area';

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What is used of a Lease. */
export interface LeaseObject {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

export interface LeaseList {
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
  readonly items: readonly LeaseObject[];
}

/**
 * The version of a record. A resource version rises with every write of the cluster, and never comes back. The uid tells a
 * Lease from another one with its name all the same: a write that carries it makes no new Lease.
 */
export function versionOf({ metadata: { uid, resourceVersion } }: LeaseObject): RecordVersion {
  return `${uid}/${resourceVersion}`;
}

/** The preconditions of a write on a version. */
export function preconditionsOf(version: RecordVersion): {
  readonly uid: string;
  readonly resourceVersion: string;
} {
  const [uid = '', resourceVersion = ''] = String(version).split('/');
  return { uid, resourceVersion };
}

/** The body of a write; without a version, of a Lease that is new. */
export function leaseOf(key: string, area: string, value: Uint8Array, ifVersion: RecordVersion | undefined) {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: leaseName(key),
      ...(ifVersion !== undefined && preconditionsOf(ifVersion)),
      labels: { 'app.kubernetes.io/managed-by': 'locks', [AREA]: area },
      annotations: { [KEY]: key, ...encoded(value) },
    },
    spec: {},
  };
}

/** @throws ForeignLeaseError for a Lease that has no value, or that of another key */
export function recordOf(lease: LeaseObject, key: string, namespace: string): StoredRecord {
  const record = isOf(lease, key) ? storedIn(lease) : undefined;
  if (record === undefined) throw new ForeignLeaseError(lease.metadata.name, namespace);
  return record;
}

/** The record in a Lease of a list; `undefined` for a Lease without one. */
export function storedIn(lease: LeaseObject): StoredRecord | undefined {
  const { [TEXT]: plain, [BINARY]: binary } = lease.metadata.annotations ?? {};
  if (plain !== undefined) return { value: Buffer.from(plain), version: versionOf(lease) };
  if (binary !== undefined) return { value: Buffer.from(binary, 'base64'), version: versionOf(lease) };
  return undefined;
}

export function keyOf(lease: LeaseObject): string | undefined {
  return lease.metadata.annotations?.[KEY];
}

function isOf(lease: LeaseObject, key: string): boolean {
  return keyOf(lease) === key;
}

function encoded(value: Uint8Array): Record<string, string> {
  try {
    return { [TEXT]: utf8.decode(value) };
  } catch {
    return { [BINARY]: Buffer.from(value).toString('base64') };
  }
}
