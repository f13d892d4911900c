import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { FAULTS, proofPage, proofText, prove } from '../src/index.ts';
import { promiseOf, proveSqlite, proveSqliteUntil } from './sqlite-proof.ts';

const module = new URL('fixtures/planted.ts', import.meta.url).href;
// Other proofs of this machine have their folders beside.
process.env['TMPDIR'] = mkdtempSync(join(tmpdir(), 'proofs-'));
afterAll(() => rmSync(tmpdir(), { recursive: true }));
const folders = (): string[] => readdirSync(tmpdir()).filter((name) => name.startsWith('locks-prove-'));

it('sound locks keep every promise, and the report says how often each was tested', async () => {
  const before = folders();
  const tests = ['exclusion', 'readers', 'permits', 'tokens', 'waits', 'aborts', 'order', 'nothing-left'];
  const proof = await proveSqliteUntil(
    'none',
    { runMs: 4_000, ttlMs: 500, faults: ['kill', 'long-pause', 'block', 'cut'] },
    (run) => !tests.some((id) => promiseOf(run, id).verdict === 'not tested'),
  );
  expect(proof.promises.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
  expect(proof).toMatchObject({ kept: true, seed: 7, ttlMs: 500, backend: 'sqlite', endedEarly: false });
  for (const id of tests)
    expect(promiseOf(proof, id), id).toMatchObject({ verdict: 'kept', tested: expect.any(Number) as number });
  expect(proof.faults.map(({ fault, times }) => [fault, times > 0])).toEqual([
    ['kill', true],
    ['long-pause', true],
    ['block', true],
    // SQLite has no network.
    ['cut', false],
  ]);
  expect(proof.untested.join('\n')).toMatch(/Faults of the network \(cut\)/);
  expect(JSON.parse(JSON.stringify(proof))).toEqual(proof);
  expect(proofText(proof)).toMatch(/^kept {9}While a holder is told/m);
  const page = proofPage(proof, 'locks prove --seed 7 <&>');
  expect(page).toContain('locks prove --seed 7 &lt;&amp;&gt;');
  // The page loads nothing.
  expect(page).not.toMatch(/\b(src|href)=|@import|url\(/);
  expect(folders()).toEqual(before);
});

it('an abort ends the run, and what was seen until then is judged', async () => {
  const controller = new AbortController();
  const onStrike = (): void => controller.abort();
  const proof = await proveSqlite('none', {
    runMs: 600_000,
    faults: ['block'],
    signal: controller.signal,
    onStrike,
  });
  expect(proof).toMatchObject({ kept: true, endedEarly: true });
  expect(promiseOf(proof, 'nothing-left').verdict).toBe('kept');
});

it.each([
  ['a fault that does not exist', { faults: ['reboot'] }, /faults must be a list of some of kill/],
  ['no fault', { faults: [] }, /faults must be/],
  ['a fault that is named twice', { faults: ['kill', 'kill'] }, /once/],
  ['a time that is too short', { runMs: 10 }, /runMs must be/],
  ['a seed that is no whole number', { seed: 1.5 }, /seed must be/],
  ['a misspelt option', { minutes: 1 }, /minutes/],
  ['a store without a module', { store: {} }, /store: module must be/],
  [
    'a module that opens no locks',
    { store: { module: import.meta.url.replace('prove.test', 'sqlite-proof') } },
    /no function that opens locks/,
  ],
  ['a module that is not there', { store: { module: new URL('none.ts', import.meta.url).href } }, /none\.ts/],
])('%s is refused', async (_, wrong, message) => {
  const options = {
    store: { module, argument: { file: '/dev/null/none', planted: 'none' } },
    runMs: 1_000,
    ...wrong,
  };
  await expect(prove(options as never)).rejects.toThrow(message);
  await expect(prove(options as never)).rejects.toMatchObject({
    code: expect.stringMatching(/^LOCK_(INVALID_ARGUMENT|BACKEND)$/) as string,
  });
});

it('locks that cannot be opened reject with LOCK_BACKEND, with the reason', async () => {
  const store = { module, argument: { file: '/dev/null/none.db', planted: 'none' } };
  await expect(prove({ store, runMs: 1_000 })).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
  expect(existsSync('/dev/null/none.db')).toBe(false);
});

it('every fault has a name once', () => {
  expect(new Set(FAULTS).size).toBe(FAULTS.length);
});
