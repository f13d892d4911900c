import { readFileSync } from 'node:fs';
import { createLocks, isLockError, type Lease } from '@locks/core';
import { memoryTestBackend } from '@locks/memory';
import { beforeEach, expect, it, vi } from 'vitest';

/** The blocks of the page, each with the words above it. */
const page = readFileSync(new URL('../../docs/ways-to-lock.md', import.meta.url), 'utf8');
const blocks = new Map(
  [...page.matchAll(/^\*\*(.+)\.\*\*[^]*?^```ts\n([^]*?)^```$/gm)].map(([, title, code]) => [title, code]),
);

const memory = memoryTestBackend();
const locks = createLocks(memory);
const given = {
  lock: locks.lock('report'),
  isLockError,
  writeReport: vi.fn(async () => 'report'),
  print: vi.fn(async (_page: string, _options: { signal: AbortSignal }): Promise<void> => undefined),
  pages: ['one', 'two', 'three'],
  shutdown: new AbortController(),
  console: { log: vi.fn() },
};

/** Runs a block of the page, as it is there, where its names are these. */
async function run(title: string): Promise<void> {
  const code = blocks.get(title);
  if (code === undefined) throw new Error(`the page has no block "${title}"`);
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  await (AsyncFunction(...Object.keys(given), code)(...Object.values(given)) as Promise<void>);
}

const holders = async (): Promise<number> => (await locks.inspect('report')).holders.length;
const held = (): Promise<Lease> => locks.lock('report').acquire();

beforeEach(() => {
  vi.clearAllMocks();
});

it('has six blocks', () => {
  expect([...blocks.keys()]).toEqual(['Wait', 'Try', 'With a limit', 'With a signal', 'By hand', 'A loss']);
});

it.each(['Wait', 'Try', 'With a limit', 'With a signal', 'By hand'])(
  '%s: works under the lock, and releases it',
  async (title) => {
    given.writeReport.mockImplementationOnce(async () => `held by ${await holders()}`);
    await run(title);
    expect(await given.writeReport.mock.results[0]?.value).toBe('held by 1');
    expect(await holders()).toBe(0);
  },
);

it('Try: says that somebody else has it', async () => {
  const other = await held();
  await run('Try');
  expect(given.console.log).toHaveBeenCalledWith('somebody else writes it');
  expect(given.writeReport).not.toHaveBeenCalled();
  await other.release();
});

it('With a limit: says who has it', async () => {
  const other = await held();
  const running = run('With a limit');
  await vi.waitFor(async () => expect((await locks.inspect('report')).waiters).toHaveLength(1));
  memory.advance(500);
  await running;
  expect(given.console.log).toHaveBeenCalledWith(expect.stringContaining('Gave up on "report"'));
  await other.release();
});

it('With a signal: the wait ends with its reason', async () => {
  const other = await held();
  const running = run('With a signal');
  await vi.waitFor(async () => expect((await locks.inspect('report')).waiters).toHaveLength(1));
  given.shutdown.abort(new Error('SIGTERM'));
  await expect(running).rejects.toThrow('SIGTERM');
  expect((await locks.inspect('report')).waiters).toEqual([]);
  await other.release();
});

it('A loss: the steps end, and the run rejects', async () => {
  const printed: string[] = [];
  given.print.mockImplementation(async (name, { signal }) => {
    printed.push(name);
    if (name === 'two') memory.lose('report');
    if (name === 'two') expect(signal.aborted).toBe(true);
  });
  await expect(run('A loss')).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'taken-over' });
  expect(printed).toEqual(['one', 'two']);
});
