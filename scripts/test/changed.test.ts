import { describe, expect, it } from 'vitest';
import { stepsOf } from '../checks/changed.ts';
import { plans } from '../checks/plan.ts';

/** The names of the steps, and the servers of the conformance suite. */
function chosen(...packages: string[]) {
  const steps = stepsOf(new Set(packages), plans['--changed']);
  const names = steps.map(({ name }) => name);
  return { names, suite: steps.find(({ name }) => name === 'contract:conformance')?.uses };
}

describe('the steps of a change', () => {
  it('are the tests of its packages, and what judges the whole', () => {
    const { names } = chosen('mongodb', 'contract-tests');
    expect(names).toEqual(expect.arrayContaining(['lint', 'types', 'layers', 'unit:mongodb']));
    expect(names).not.toContain('unit:etcd');
    expect(names).not.toContain('simulation:short');
  });

  it('run the suite on the stores of its packages', () => {
    expect(chosen('etcd').suite).toEqual(['etcd']);
    expect(chosen('sqlite').suite).toEqual([]);
    expect(chosen('nestjs').suite).toBeUndefined();
  });

  it('are all where every package changed', () => {
    const all = plans['--changed'].flatMap(({ concerns = [] }) => concerns);
    expect(chosen('core', 'memory', ...all).names).toEqual(plans['--changed'].map(({ name }) => name));
  });
});
