import { error, type Finding, warning } from './finding.ts';

/** The oldest versions that have the features which the locks need. */
export const OLDEST: Readonly<Record<string, string>> = {
  redis: '6.2',
  postgres: '12',
  mariadb: '10.5',
  mysql: '8.0',
  etcd: '3.4',
  zookeeper: '3.5',
};

/**
 * The oldest versions that the tests ran on: docs/support.md. For a product that is not listed, the tests ran on
 * {@link OLDEST}.
 */
export const SUPPORTED: Readonly<Record<string, string>> = {
  postgres: '15',
  mariadb: '10.11',
  mysql: '9.7',
  zookeeper: '3.8',
};

/** The finding for a server that is older than the locks need, or than the versions in the tests. */
export function oldVersion(store: string, product: string, version: string): Finding | undefined {
  const oldest = OLDEST[product] ?? '0';
  const supported = SUPPORTED[product] ?? oldest;
  const id = `${store}/version`;
  if (isOlder(version, oldest))
    return error(
      id,
      `the server is ${product} ${version}; the locks need ${oldest} or newer`,
      `upgrade the server to ${newer(oldest, supported)} or newer`,
    );
  if (isOlder(version, supported))
    return warning(
      id,
      `the server is ${product} ${version}, which is not supported: no test of the locks ran on a version before ${supported}`,
      `upgrade the server to ${supported} or newer`,
    );
  return undefined;
}

function newer(one: string, other: string): string {
  return isOlder(one, other) ? other : one;
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
