import type { LockMode } from '@locks/core';
import type { StoredKey } from './versioned-keys.ts';

/** What the adapter writes before its names, and after it two slashes. */
const LOCKS = 'locks//';
const RANKS = 128;

/** One acquisition of a resource, as its key says, read apart from the adapter. */
export interface EntryView {
  readonly id: string;
  readonly label: string | undefined;
  readonly mode: LockMode;
  readonly isHeld: boolean;
  readonly token: number;
  readonly lease: string;
  /** Smaller: further ahead in the queue. */
  readonly position: number;
}

interface Detail {
  readonly label?: string;
  readonly weight?: number;
  readonly token?: string;
  readonly rank?: number;
}

/** The resource of a key; `undefined`: it is none of an acquisition. */
export function resourceOf(key: string): string | undefined {
  const [resource = '', id] = key.startsWith(LOCKS) ? key.slice(LOCKS.length).split('/') : [];
  return resource === '' || id === undefined ? undefined : resource;
}

export function prefixOf(resource: string): string {
  return `${LOCKS}${resource}/`;
}

export function stealMarkOf(resource: string): string {
  return `${LOCKS}/stolen/${resource}`;
}

export function entryOf({ key, value, createRevision, modRevision, lease }: StoredKey): EntryView {
  const text = value.toString('utf8');
  const [tag = ''] = text.split('{');
  const { label, weight = 1, token, rank = 0 } = JSON.parse(text.slice(tag.length)) as Detail;
  const permit = /^p(\d+)([hw])$/.exec(tag);
  const mode: LockMode =
    permit === null
      ? { kind: tag === 'rs' || tag === 'ry' ? 'shared' : 'exclusive' }
      : { kind: 'permit', limit: Number(permit[1]), weight };
  return {
    id: key.slice(key.lastIndexOf('/') + 1),
    label,
    mode,
    isHeld: tag === 're' || tag === 'rs' || permit?.[2] === 'h',
    token: Number(token ?? modRevision * RANKS + rank),
    lease,
    position: createRevision + rank / RANKS,
  };
}
