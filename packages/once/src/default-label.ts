import { hostname } from 'node:os';

/** The name of this process for a slot store: `host:pid`. */
export function defaultLabel(): string {
  // A host name may have any characters, and must not make the work fail.
  return `${hostname()
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 200)}:${process.pid}`;
}
