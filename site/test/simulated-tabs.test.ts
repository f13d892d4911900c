import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SimulatedTabs } from '../src/playground/simulated-tabs.ts';

let tabs: SimulatedTabs;
const states = () => tabs.tabs.map(({ state }) => state);

beforeEach(() => {
  tabs = new SimulatedTabs(['A', 'B'], () => {});
});
afterEach(() => tabs.close());

it('serves the tabs in the order in which they asked', async () => {
  await tabs.acquire(0);
  const second = tabs.acquire(1);
  await vi.waitFor(() => expect(states()).toEqual(['holding', 'waiting']));
  await tabs.release(0);
  await second;
  expect(states()).toEqual(['idle', 'holding']);
});

it('gives the lock of a frozen tab to the next, with a higher token, and tells the frozen tab when it resumes', async () => {
  await tabs.acquire(0);
  const before = BigInt(tabs.tabs[0]?.token ?? '');
  tabs.freeze(0);
  await tabs.acquire(1);
  expect(states()).toEqual(['frozen', 'holding']);
  expect(BigInt(tabs.tabs[1]?.token ?? '')).toBeGreaterThan(before);
  tabs.resume(0);
  expect(states()).toEqual(['lost', 'holding']);
}, 30_000);

it('keeps the lock of a tab that resumes in time', async () => {
  await tabs.acquire(0);
  tabs.freeze(0);
  tabs.resume(0);
  expect(states()).toEqual(['holding', 'idle']);
});
