import { error, type Finding } from './finding.ts';

/** The oldest versions on which the locks work. */
export const OLDEST: Readonly<Record<string, string>> = {
  redis: '6.2',
  postgres: '12',
  mariadb: '10.5',
  mysql: '8.0',
  etcd: '3.4',
  zookeeper: '3.5',
};

/** A server that is older than the locks need. */
export function oldVersion(
  store: string,
  product: string,
  version: string,
  oldest = OLDEST[product] ?? '0',
): Finding | undefined {
  if (!isOlder(version, oldest)) return undefined;
  return error(
    `${store}/version`,
    `the server is ${product} ${version}; the locks need ${oldest} or newer`,
    `upgrade the server to ${oldest} or newer`,
  );
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
