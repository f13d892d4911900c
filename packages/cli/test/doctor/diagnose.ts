import { expect } from 'vitest';
import { doctor } from '../../src/commands/doctor.ts';
import type { Diagnosis, Finding } from '../../src/doctor/finding.ts';
import { OLDEST, SUPPORTED } from '../../src/doctor/old-version.ts';
import { locksHere, Program } from '../program.ts';

/** Lets a program believe that it is a minute later. */
const A_MINUTE_LATER = {
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent('const now=Date.now;Date.now=()=>now()+60000')}`,
};

/** What `locks doctor --json` says of a store, with its exit code, which must fit. */
export async function diagnose(
  url: string,
  { args: more = [], clock = 'right' }: { args?: readonly string[]; clock?: 'right' | 'wrong' } = {},
): Promise<Diagnosis> {
  const args = ['doctor', '--json', ...more];
  const { code, stdout, stderr } =
    clock === 'wrong'
      ? await new Program(args, url, '', A_MINUTE_LATER).outcome
      : await locksHere(url, ...args);
  expect({ code, stderr }).toEqual({ code: stdout.includes('"severity":"error"') ? 1 : 0, stderr: '' });
  return JSON.parse(stdout) as Diagnosis;
}

/** What is found where the locks need this version of a product: no server here is older than they really need. */
export async function diagnoseNeeding(product: string, oldest: string, url: string): Promise<Diagnosis> {
  return await diagnoseWith(OLDEST, product, oldest, url);
}

/** What is found where this version is the oldest that the tests ran on. */
export async function diagnoseSupporting(product: string, oldest: string, url: string): Promise<Diagnosis> {
  return await diagnoseWith(SUPPORTED, product, oldest, url);
}

async function diagnoseWith(
  versions: Readonly<Record<string, string>>,
  product: string,
  version: string,
  url: string,
): Promise<Diagnosis> {
  const changed = versions as Record<string, string>;
  const really = changed[product];
  if (really === undefined) throw new Error(`no version of ${product} is named`);
  changed[product] = version;
  let said = '';
  try {
    await doctor(url, undefined, true, (text) => (said += text));
  } finally {
    changed[product] = really;
  }
  return JSON.parse(said) as Diagnosis;
}

/** The severity of each finding, by its id. */
export function severities({ findings }: Diagnosis): Record<string, Finding['severity']> {
  return Object.fromEntries(findings.map(({ id, severity }) => [id, severity]));
}
