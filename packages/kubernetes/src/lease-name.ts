import { createHash } from 'node:crypto';

/** Kubernetes allows 253 characters in a name, and 63 in a value of a label. */
const MAX_NAME = 253;
const MAX_LABEL = 63;
/** 160 bits: nobody finds two keys with the same. */
const HASH_LENGTH = 40;

/** Words of a-z and 0-9 with single hyphens between them, in folders. Two hyphens in a row are left to names with a hash. */
const PLAIN = /^[a-z0-9]+(?:-[a-z0-9]+)*(?:\/[a-z0-9]+(?:-[a-z0-9]+)*)*$/;

/**
 * The name of the Lease of a key: a DNS subdomain. Different keys have different names. A plain key is read in its name
 * (`locks/lock/report`: `locks.lock.report`), another one has its hash after what is legible of it.
 */
export function leaseName(key: string): string {
  return nameWithin(MAX_NAME, key);
}

/** What stands for a part of a key in the value of a label. */
export function labelValue(area: string): string {
  return nameWithin(MAX_LABEL, area);
}

function nameWithin(length: number, key: string): string {
  if (key.length <= length && PLAIN.test(key)) return key.replaceAll('/', '.');
  const hash = createHash('sha256').update(key).digest('hex').slice(0, HASH_LENGTH);
  const legible = key
    .slice(0, length)
    .toLowerCase()
    .replaceAll(/[^a-z0-9/]+/g, '-')
    .split('/')
    .map((word) => word.replaceAll(/^-|-$/g, ''))
    .filter((word) => word !== '')
    .join('.')
    .slice(0, length - HASH_LENGTH - 2)
    .replace(/[.-]+$/, '');
  return legible === '' ? hash : `${legible}--${hash}`;
}
