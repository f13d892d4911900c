import { describe, expect, it } from 'vitest';
import { areInConflict, Capacity, holdsAlone, type LockMode } from '../../src/backend/index.ts';

const exclusive: LockMode = { kind: 'exclusive' };
const shared: LockMode = { kind: 'shared' };
const permits = (weight: number, limit = 3): LockMode => ({ kind: 'permit', limit, weight });

describe('modes', () => {
  it('conflict where one is a permit and the other is not, or has another limit', () => {
    expect(areInConflict(permits(1), permits(2))).toBe(false);
    expect(areInConflict(permits(1), permits(1, 4))).toBe(true);
    expect(areInConflict(permits(1), exclusive)).toBe(true);
    expect(areInConflict(shared, permits(1))).toBe(true);
    expect(areInConflict(shared, exclusive)).toBe(false);
  });
});

describe('a hold', () => {
  it.each([
    [exclusive, true],
    [shared, false],
    [permits(1), false],
    [permits(3), false],
  ] as const)('in the mode %j is alone: %s', (mode, isAlone) => {
    expect(holdsAlone(mode)).toBe(isAlone);
  });
});

describe('Capacity', () => {
  it.each([
    [[], exclusive, true],
    [[], shared, true],
    [[], permits(3), true],
    [[], permits(4), false],
    [[exclusive], exclusive, false],
    [[exclusive], shared, false],
    [[exclusive], permits(1), false],
    [[shared], shared, true],
    [[shared, shared], shared, true],
    [[shared], exclusive, false],
    [[shared], permits(1), false],
    [[permits(2)], permits(1), true],
    [[permits(2)], permits(2), false],
    [[permits(1)], shared, false],
    [[permits(1), shared], shared, false],
    [[permits(1), shared], permits(1), false],
  ] as const)('beside %j says of %j: %s', (holders, mode, fits) => {
    expect(Capacity.beside(holders).fits(mode)).toBe(fits);
    expect(Capacity.beside(holders).take(mode)).toBe(fits);
  });

  it('counts what it let in, and nothing else', () => {
    const capacity = new Capacity('permit', 1);
    expect(capacity.take(permits(3))).toBe(false);
    expect(capacity.take(permits(2))).toBe(true);
    expect(capacity.take(permits(1))).toBe(false);
    expect(capacity.isUsedUp).toBe(false);
    expect(Capacity.beside([exclusive]).isUsedUp).toBe(true);
  });
});
