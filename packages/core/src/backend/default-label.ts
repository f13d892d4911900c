import { hostname } from 'node:os';

/** Returns the name of this process for operators: `host:pid`. */
export function defaultLabel(): string {
  // A host name may have any characters, and must not make every lock fail.
  return `${hostname()
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 200)}:${process.pid}`;
}
