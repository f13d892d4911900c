import { expect, test } from 'vitest';
import { FencedResource } from '../../src/checks/fenced-resource.ts';
import { World } from '../../src/kernel/world.ts';

function fenced() {
  const world = new World(1, false);
  const counts = { late: 0, stopped: 0 };
  return { world, counts, resource: new FencedResource(world, 'r0', counts) };
}

test('a write of a former holder is stopped by its lower token, and counted', () => {
  const { world, counts, resource } = fenced();
  const write = resource.enter('former', 1n);
  write();
  resource.enter('later', 2n);
  write();
  expect(counts).toEqual({ late: 1, stopped: 1 });
  expect(world.violations).toEqual([]);
});

test('a write of a former holder with the same token is a violation', () => {
  const { world, resource } = fenced();
  const write = resource.enter('former', 1n);
  resource.enter('later', 1n);
  write();
  expect(world.violations.map(({ clause }) => clause)).toEqual(['§6.1']);
});
