import type { Diagnosis, Finding } from '@locks/core/doctor';
import { expect } from 'vitest';
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

/** The severity of each finding, by its id. */
export function severities({ findings }: Diagnosis): Record<string, Finding['severity']> {
  return Object.fromEntries(findings.map(({ id, severity }) => [id, severity]));
}
