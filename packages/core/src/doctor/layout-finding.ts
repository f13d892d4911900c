import type { Finding } from './diagnosis.ts';
import { failureOf } from './failure.ts';
import { error } from './finding.ts';

/** The finding for an error that another version of the package laid out the store; `undefined` for any other error. */
export function layoutFinding(store: string, failure: unknown): Finding | undefined {
  const { message, codes } = failureOf(failure);
  if (codes.includes('NEWER_SCHEMA'))
    return error(
      `${store}/layout`,
      message,
      'upgrade the programs of the older version; until then give them a place of their own',
    );
  if (codes.includes('OLDER_SCHEMA'))
    return error(
      `${store}/layout`,
      message,
      'stop all programs of the older version, and then do what the message says',
    );
  return undefined;
}
