import type { Finding } from './diagnosis.ts';
import { error, warning } from './finding.ts';

/** The versions of a server on which locks run. */
export interface ServerVersions {
  /** The oldest version that has the features which the locks need. */
  readonly oldest: string;
  /** The oldest version that the tests ran on. */
  readonly tested: string;
}

/**
 * The finding for a server that is older than the locks need, or than the versions in the tests.
 *
 * @param product - the name of the server, where the store has several
 */
export function oldVersion(
  store: string,
  version: string,
  versions: ServerVersions,
  product = store,
): Finding | undefined {
  const { oldest, tested } = versions;
  const id = `${store}/version`;
  if (isOlder(version, oldest))
    return error(
      id,
      `the server is ${product} ${version}; the locks need ${oldest} or newer`,
      `upgrade the server to ${isOlder(oldest, tested) ? tested : oldest} or newer`,
    );
  if (isOlder(version, tested))
    return warning(
      id,
      `the server is ${product} ${version}, which is not supported: no test of the locks ran on a version before ${tested}`,
      `upgrade the server to ${tested} or newer`,
    );
  return undefined;
}

function isOlder(version: string, oldest: string): boolean {
  const [have, need] = [numbersOf(version), numbersOf(oldest)];
  for (const [index, number] of need.entries()) {
    const mine = have[index] ?? 0;
    if (mine !== number) return mine < number;
  }
  return false;
}

function numbersOf(version: string): number[] {
  return (/\d+(?:\.\d+)*/.exec(version)?.[0] ?? '0').split('.').map(Number);
}
