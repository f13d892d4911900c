import { describe, expect, it } from 'vitest';
import { checkHistory, HistoryError, HistoryRecorder, parseHistory } from '../src/index.ts';

function recording() {
  const lines: string[] = [];
  const clock = { now: 100 };
  const recorder = new HistoryRecorder(
    'a',
    (line) => lines.push(line),
    () => clock.now,
  );
  const events = () => [...parseHistory(lines.join(''))];
  return { recorder, clock, events };
}

const failing = (code: string) => () => Promise.reject(Object.assign(new Error('no'), { code }));

describe('HistoryRecorder', () => {
  it('writes the calls of a hold, with what the lease says', async () => {
    const { recorder, clock, events } = recording();
    const lease = { acquisitionId: 'x', fencingToken: 7n };
    const hold = await recorder.acquire(
      'stock',
      async () => {
        clock.now = 101;
        return lease;
      },
      { kind: 'shared' },
    );
    expect(hold?.lease).toBe(lease);
    clock.now = 102;
    await hold?.release(async () => {
      clock.now = 103;
    });
    const common = { process: 'a', resource: 'stock' };
    expect(events()).toEqual([
      { type: 'invoke', operation: 'acquire', id: 1, time: 100, mode: { kind: 'shared' }, ...common },
      { type: 'ok', operation: 'acquire', id: 1, time: 101, acquisitionId: 'x', token: '7', ...common },
      { type: 'invoke', operation: 'release', id: 2, time: 102, acquisitionId: 'x', ...common },
      { type: 'ok', operation: 'release', id: 2, time: 103, acquisitionId: 'x', ...common },
    ]);
  });

  it('gives an id of its own to a lease without one, and takes nothing for a refusal', async () => {
    const { recorder, events } = recording();
    const [one, other] = [
      await recorder.acquire('r', async () => 1),
      await recorder.acquire('r', async () => 2),
    ];
    expect(one?.acquisitionId).not.toBe(other?.acquisitionId);
    expect(await recorder.acquire('r', async () => undefined)).toBeUndefined();
    expect(events().map(({ type }) => type)).toEqual(['invoke', 'ok', 'invoke', 'ok', 'invoke', 'fail']);
  });

  it('tells a refusal from an outcome that nobody knows', async () => {
    const { recorder, events } = recording();
    await expect(recorder.acquire('r', failing('LOCK_TIMEOUT'))).rejects.toThrow('no');
    await expect(recorder.acquire('r', failing('LOCK_BACKEND'))).rejects.toThrow('no');
    const hold = await recorder.acquire('r', async () => ({}));
    await expect(hold?.release(failing('LOCK_BACKEND'))).rejects.toThrow('no');
    const ends = events().filter(({ type }) => type !== 'invoke');
    expect(ends.map(({ type, error }) => [type, error])).toEqual([
      ['fail', 'Error: no'],
      ['info', 'Error: no'],
      ['ok', undefined],
      ['info', 'Error: no'],
    ]);
  });

  it('notes a loss once: at the signal, and not later than was confirmed', async () => {
    const { recorder, clock, events } = recording();
    const controller = new AbortController();
    const lease = { acquisitionId: 'x', signal: controller.signal, validForMs: 10 };
    const hold = await recorder.acquire('r', async () => lease);
    clock.now = 105;
    hold?.confirm();
    hold?.confirm(20);
    clock.now = 130;
    // It stood still from 105 to 130: what was confirmed ended at 125.
    controller.abort();
    hold?.lost();
    hold?.confirm(0);
    await expect(hold?.release(failing('LOCK_LOST'))).rejects.toThrow('no');
    const losses = events().filter(({ operation }) => operation === 'loss');
    expect(losses).toMatchObject([{ type: 'info', acquisitionId: 'x', time: 130, endedAt: 125 }]);
    const other = await recorder.acquire('r', async () => ({
      acquisitionId: 'y',
      signal: AbortSignal.abort(),
    }));
    expect(other?.acquisitionId).toBe('y');
    expect(events().at(-1)).toMatchObject({ operation: 'loss', acquisitionId: 'y' });
  });

  it('writes nothing as held that was over when the acquire was answered', async () => {
    const { recorder, clock, events } = recording();
    const controller = new AbortController();
    const hold = await recorder.acquire('r', async () => {
      clock.now = 150;
      return { acquisitionId: 'x', validForMs: 0, signal: controller.signal };
    });
    clock.now = 160;
    controller.abort();
    expect(hold?.acquisitionId).toBe('x');
    expect(events().at(-1)).toMatchObject({ operation: 'loss', time: 160, endedAt: 100 });
  });

  it('does not add a pause between the clock and the lease to what is confirmed', async () => {
    const { recorder, clock, events } = recording();
    const controller = new AbortController();
    const lease = {
      acquisitionId: 'x',
      signal: controller.signal,
      get validForMs() {
        clock.now += 50;
        return 20;
      },
    };
    expect(await recorder.acquire('r', async () => lease)).toBeDefined();
    clock.now = 200;
    controller.abort();
    expect(events().at(-1)).toMatchObject({ operation: 'loss', endedAt: 120 });
  });

  it('notes a loss that only the release reports, before the outcome of the release', async () => {
    const { recorder, events } = recording();
    const hold = await recorder.acquire('r', async () => ({ acquisitionId: 'x' }));
    await expect(hold?.release(failing('LOCK_LOST'))).rejects.toThrow('no');
    expect(events().map(({ operation, type }) => `${operation} ${type}`)).toEqual([
      'acquire invoke',
      'acquire ok',
      'release invoke',
      'loss info',
      'release fail',
    ]);
  });

  it('notes the crash of another process, and reads the clock of the machine', async () => {
    const lines: string[] = [];
    const before = Number(process.hrtime.bigint()) / 1e6;
    const hold = await new HistoryRecorder('a', (line) => lines.push(line)).acquire('r', async () => ({}));
    expect(hold).toBeDefined();
    new HistoryRecorder('a', (line) => lines.push(line)).crashed();
    const next = await new HistoryRecorder('b', (line) => lines.push(line)).acquire('r', async () => ({}));
    expect(next).toBeDefined();
    const { violations, holds } = checkHistory(parseHistory(lines));
    expect([violations, holds]).toEqual([[], 2]);
    const [first] = parseHistory(lines);
    expect(first?.time).toBeGreaterThanOrEqual(before);
    expect(first?.time).toBeLessThan(before + 60_000);
  });

  it('refuses bad arguments before it calls the lock', async () => {
    const { recorder, events } = recording();
    const unexpected = () => expect.fail('it was called');
    for (const make of [
      () => new HistoryRecorder('', () => {}),
      () => new HistoryRecorder('a', undefined as never),
      () => new HistoryRecorder('a', () => {}, 5 as never),
    ])
      expect(make).toThrow(HistoryError);
    await expect(recorder.acquire('', unexpected)).rejects.toThrow(HistoryError);
    await expect(recorder.acquire('r', unexpected, { kind: 'permit' } as never)).rejects.toThrow(
      HistoryError,
    );
    expect(events()).toEqual([]);
    const hold = await recorder.acquire('r', async () => ({}));
    expect(() => hold?.confirm('5' as never)).toThrow(HistoryError);
  });
});
