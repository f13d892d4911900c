import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { createLocks } from '@locks/core';
import { memoryBackend } from '@locks/memory';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type * as DecoratedStock from '../src/decorated-stock.ts';

// Neither Node nor the test runner knows decorators: compiled as an application compiles them.
const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
let output: string;
let Warehouse: typeof DecoratedStock.Warehouse;

beforeAll(async () => {
  await mkdir(here('../dist'), { recursive: true });
  output = await mkdtemp(here('../dist/decorated-'));
  const tsc = here('../node_modules/typescript/bin/tsc');
  const config = here('./tsconfig.decorated.json');
  await promisify(execFile)(process.execPath, [tsc, '-p', config, '--outDir', output]);
  const compiled = pathToFileURL(join(output, 'decorated-stock.js')).href;
  ({ Warehouse } = (await import(/* @vite-ignore */ compiled)) as typeof DecoratedStock);
}, 60_000);

afterAll(() => rm(output, { recursive: true, force: true }));

function table(): DecoratedStock.StockTable {
  const units = new Map([['sku-42', 10]]);
  const think = () => new Promise((resolve) => setTimeout(resolve, 1));
  return {
    async units(sku) {
      const found = units.get(sku) ?? 0;
      await think();
      return found;
    },
    async update(sku, count) {
      await think();
      units.set(sku, count);
    },
  };
}

it('sells what is in stock and no more, however many call at once', async () => {
  await using locks = createLocks(memoryBackend());
  const stock = table();
  const warehouse = new Warehouse(locks, stock);
  const outcomes = await Promise.all(Array.from({ length: 25 }, () => warehouse.deduct('sku-42', 1)));
  expect(outcomes.filter((outcome) => outcome === 'sold')).toHaveLength(10);
  expect(await stock.units('sku-42')).toBe(0);
});

it('refuses at once to count what somebody sells, and counts it otherwise', async () => {
  await using locks = createLocks(memoryBackend());
  const stock = table();
  const warehouse = new Warehouse(locks, stock);
  const lease = await locks.lock('stock:sku-42').acquire();
  await expect(warehouse.recount('sku-42', async () => 3)).rejects.toMatchObject({ code: 'LOCK_CONTENDED' });
  await warehouse.recount('sku-43', async () => 4);
  await lease.release();
  await warehouse.recount('sku-42', async () => 3);
  expect(await Promise.all(['sku-42', 'sku-43'].map((sku) => stock.units(sku)))).toEqual([3, 4]);
});

it('locks under the names of class and method where no key is given', async () => {
  await using locks = createLocks(memoryBackend());
  const warehouse = new Warehouse(locks, table());
  await warehouse.closeDay(async () => {
    expect((await locks.inspect('Warehouse.closeDay')).holders).toHaveLength(1);
  });
});
